#!/bin/sh
# The first process of the outer guest: makes it a machine with KVM, then runs the checks in the
# order of their names, or a shell for people.
export PATH=/bin:/usr/bin HOME=/root NO_COLOR=1
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mount -t debugfs none /sys/kernel/debug
mount -t tracefs none /sys/kernel/tracing
# Unlike most systems, this one has no /dev/stdout.
cd /tmp || exit
exec </dev/ttyS0 >/dev/ttyS0 2>&1
export NOISE="tare noise --workload prime --limit 22 --repetitions 2000 --runs 1 --output run \
--target unikernel,mem=64M,accel=kvm"
load() {
    while read -r module; do insmod "/lib/modules/$module"; done </lib/modules/order
}
if [ -e /checks ]; then
    # What is written by one call is not interrupted by these lines.
    while sleep 5; do echo '@@ alive'; done &
    for check in /checks/*; do
        name=${check##*/}
        echo "@@ begin ${name#*-}"
        # The checks before `load` see a machine without KVM.
        if [ "${name#*-}" = load ]; then load; fi
        timeout -k 1 "$LIMIT" sh -eu "$check" >/tmp/said 2>&1
        status=$?
        dd if=/tmp/said bs=1M status=none
        echo "@@ end $status $(cut -d' ' -f1 /proc/uptime)"
    done
else
    load
    echo "tare in a guest with a KVM that QEMU emulates; leave by 'exit'"
    setsid -c sh
fi
echo o >/proc/sysrq-trigger
sleep 60
