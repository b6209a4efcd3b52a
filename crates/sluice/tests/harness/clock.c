/* Moves the wall clock of a program, to be preloaded: the seconds that the file CLOCK_FILE holds are added to it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("CLOCK_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *map = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map != MAP_FAILED) ahead = map;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int outcome = real ? real(clock, now) : (int)syscall(SYS_clock_gettime, clock, now);
    if (!outcome && clock == CLOCK_REALTIME && ahead) now->tv_sec += *ahead;
    return outcome;
}
