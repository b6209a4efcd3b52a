// What takes FLUSH_MICROSECONDS longer than it would: fsync, fdatasync, msync and syncfs of a program that is started with this
// library. Flushes of several threads and processes do not wait for each other, as on a device that takes many at a time.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long later(long outcome) {
    const char *text = getenv("FLUSH_MICROSECONDS");
    long microseconds = text ? atol(text) : 0;
    struct timespec wait = {microseconds / 1000000, microseconds % 1000000 * 1000};
    if (outcome == 0)
        nanosleep(&wait, NULL);
    return outcome;
}

int fsync(int file) { return later(syscall(SYS_fsync, file)); }
int fdatasync(int file) { return later(syscall(SYS_fdatasync, file)); }
int syncfs(int file) { return later(syscall(SYS_syncfs, file)); }
int msync(void *at, size_t bytes, int flags) { return later(syscall(SYS_msync, at, bytes, flags)); }
