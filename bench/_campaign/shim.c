/* What the campaign puts between a process and its machine (LD_PRELOAD): the wall's clock set
   forward or back, and calls that fail on files below one folder. All of it is in a page that the
   campaign shares, so that it can be changed while the process runs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int64_t ahead_s; /* of the true wall clock */
    volatile int32_t error;   /* errno that calls fail with; 0: none */
    volatile int32_t every;   /* one call in so many fails */
    char folder[1024];
};
static struct control *control;
static volatile uint32_t calls;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CAMPAIGN_SHIM");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED) control = page;
}

static int below(const char *path) {
    size_t length = strlen(control->folder);
    return length && strncmp(path, control->folder, length) == 0;
}
static int due(void) {
    int every = control->every > 0 ? control->every : 1;
    return __sync_fetch_and_add(&calls, 1) % every == 0;
}
static int fails_at(const char *path) {
    if (!control || !control->error || path[0] != '/' || !below(path) || !due()) return 0;
    errno = control->error;
    return 1;
}
static int fails_on(int fd) {
    char link[64], path[1100];
    if (!control || !control->error) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return fails_at(path);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    static __typeof__(&clock_gettime) real;
    if (!real) real = REAL(clock_gettime);
    int answer = real(which, now);
    if (!answer && control && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        now->tv_sec += control->ahead_s;
    return answer;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *into) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (into) *into = exact.tv_sec;
    return exact.tv_sec;
}

ssize_t write(int fd, const void *data, size_t n) { return fails_on(fd) ? -1 : REAL(write)(fd, data, n); }
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return fails_on(fd) ? -1 : REAL(pwrite)(fd, data, n, at); }
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) { return fails_on(fd) ? -1 : REAL(pwrite64)(fd, data, n, at); }
ssize_t writev(int fd, const struct iovec *data, int n) { return fails_on(fd) ? -1 : REAL(writev)(fd, data, n); }
int fsync(int fd) { return fails_on(fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails_on(fd) ? -1 : REAL(fdatasync)(fd); }
int ftruncate64(int fd, off64_t size) { return fails_on(fd) ? -1 : REAL(ftruncate64)(fd, size); }
int rename(const char *from, const char *to) { return fails_at(to) ? -1 : REAL(rename)(from, to); }
int mkdir(const char *path, mode_t mode) { return fails_at(path) ? -1 : REAL(mkdir)(path, mode); }

#define OPEN(name)                                                                  \
    int name(const char *path, int flags, ...) {                                    \
        va_list rest;                                                               \
        va_start(rest, flags);                                                      \
        mode_t mode = va_arg(rest, mode_t);                                         \
        va_end(rest);                                                               \
        if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) && fails_at(path)) return -1;   \
        return REAL(name)(path, flags, mode);                                       \
    }
OPEN(open)
OPEN(open64)
