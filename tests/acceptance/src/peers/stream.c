/* STREAM's four kernels over three arrays of so many bytes, in pages as the kernel has them by default: the best bandwidth of
   each in ten passes after a first one, in bytes per second. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PASSES 11

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int count, char **words)
{
    long n = (count > 1 ? atol(words[1]) : 128L << 20) / 8;
    double *a = aligned_alloc(4096, 3 * 8 * n), *b = a + n, *c = b + n;
    double s = 0.41421356237309503, best[4] = {1e9, 1e9, 1e9, 1e9};
    for (long j = 0; j < n; j++)
        a[j] = 1, b[j] = c[j] = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        double t[5];
        t[0] = now();
#pragma GCC unroll 16
        for (long j = 0; j < n; j++)
            c[j] = a[j];
        t[1] = now();
#pragma GCC unroll 16
        for (long j = 0; j < n; j++)
            b[j] = s * c[j];
        t[2] = now();
#pragma GCC unroll 16
        for (long j = 0; j < n; j++)
            c[j] = a[j] + b[j];
        t[3] = now();
#pragma GCC unroll 16
        for (long j = 0; j < n; j++)
            a[j] = b[j] + s * c[j];
        t[4] = now();
        for (int kernel = 0; pass > 0 && kernel < 4; kernel++)
            if (t[kernel + 1] - t[kernel] < best[kernel])
                best[kernel] = t[kernel + 1] - t[kernel];
    }
    /* The arrays are used, so the compiler may leave none of it out. */
    if (a[n - 1] + b[n - 1] + c[n - 1] < 1)
        return 1;
    for (int kernel = 0; kernel < 4; kernel++)
        printf("%f\n", (kernel < 2 ? 16.0 : 24.0) * n / best[kernel]);
    return 0;
}
