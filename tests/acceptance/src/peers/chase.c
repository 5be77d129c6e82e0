/* Loads that wait for each other, in a random cycle through the lines of 64 MiB: the least mean of a block, in ns. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define BYTES (64L << 20)
#define LINES (BYTES / 64)
#define BLOCK 16384
#define BLOCKS 200

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(void)
{
    char *base = aligned_alloc(2L << 20, BYTES);
    madvise(base, BYTES, MADV_HUGEPAGE);
    uint32_t *next = malloc(LINES * sizeof *next);
    for (long line = 0; line < LINES; line++)
        next[line] = line;
    srand48(1);
    for (long line = LINES - 1; line > 0; line--) {
        long other = (long)(drand48() * line);
        uint32_t swap = next[line];
        next[line] = next[other];
        next[other] = swap;
    }
    for (long line = 0; line < LINES; line++)
        *(char **)(base + line * 64) = base + (long)next[line] * 64;
    free(next);
    char *at = base;
    for (long line = 0; line < LINES; line++)
        at = *(char **)at;
    double best = 1e18;
    for (int block = 0; block < BLOCKS; block++) {
        double begin = now();
        for (int load = 0; load < BLOCK; load++)
            at = *(char **)at;
        double took = (now() - begin) / BLOCK;
        if (took < best)
            best = took;
        __asm__ volatile("" : : "r"(at) : "memory");
    }
    printf("%f\n", best);
    return 0;
}
