/* Grains between a GPU's memory and files, each thread with two blocks of locked memory of its own.
 *
 * One thread of several that call this with the same `next`: each takes grains until there are none.
 * While one block goes to its file or comes from it, the other is on the bus. A block is so small
 * that it stays in the processor's cache between the two.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

struct driver {
    int (*set_context)(void *context);
    int (*to_host)(void *to, uint64_t from, size_t count, void *stream);
    int (*to_device)(uint64_t to, const void *from, size_t count, void *stream);
    int (*synchronize)(void *stream);
};

struct grain {
    uint64_t near;
    int64_t file;
    int64_t offset;
    int64_t length;
};

struct thread {
    const struct driver *driver;
    void *context;
    void *streams[2];
    char *blocks[2];
    int64_t block;
};

static int written(const char *from, const struct grain *grain, int64_t at, int64_t count)
{
    while (count > 0) {
        ssize_t done = pwrite((int)grain->file, from, (size_t)count, grain->offset + at);
        if (done < 0 && errno != EINTR)
            return errno;
        if (done > 0)
            from += done, at += done, count -= done;
    }
    return 0;
}

static int read_in(char *to, const struct grain *grain, int64_t at, int64_t count)
{
    while (count > 0) {
        ssize_t done = pread((int)grain->file, to, (size_t)count, grain->offset + at);
        if (done < 0 && errno != EINTR)
            return errno;
        if (done == 0)
            return ENODATA;
        if (done > 0)
            to += done, at += done, count -= done;
    }
    return 0;
}

static int64_t shorter(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int out(const struct thread *mine, const struct grain *grain)
{
    const struct driver *driver = mine->driver;
    int64_t block = mine->block, length = grain->length;
    for (int64_t at = 0, number = 0; at < length + block; at += block, number++) {
        if (at < length) {
            int failed = driver->to_host(mine->blocks[number & 1], grain->near + (uint64_t)at,
                                         (size_t)shorter(block, length - at),
                                         mine->streams[number & 1]);
            if (failed)
                return -failed;
        }
        if (number) { /* the one before */
            int64_t before = at - block, which = (number - 1) & 1;
            int failed = driver->synchronize(mine->streams[which]);
            if (failed)
                return -failed;
            failed = written(mine->blocks[which], grain, before, shorter(block, length - before));
            if (failed)
                return failed;
        }
    }
    return 0;
}

static int into(const struct thread *mine, const struct grain *grain)
{
    const struct driver *driver = mine->driver;
    int64_t block = mine->block, length = grain->length;
    for (int64_t at = 0, number = 0; at < length; at += block, number++) {
        int which = (int)(number & 1);
        int64_t count = shorter(block, length - at);
        int failed = driver->synchronize(mine->streams[which]); /* what the block had is there */
        if (failed)
            return -failed;
        failed = read_in(mine->blocks[which], grain, at, count);
        if (failed)
            return failed;
        failed = driver->to_device(grain->near + (uint64_t)at, mine->blocks[which], (size_t)count,
                                   mine->streams[which]);
        if (failed)
            return -failed;
    }
    return 0;
}

/* 0; an errno; or the driver's error, below 0. */
int boa_carry(const struct thread *mine, const struct grain *grains, int64_t count, int64_t *next,
              int outward)
{
    int failed = -mine->driver->set_context(mine->context);
    while (!failed) {
        int64_t number = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
        if (number >= count)
            break;
        failed = outward ? out(mine, &grains[number]) : into(mine, &grains[number]);
    }
    for (int which = 0; which < 2; which++) { /* nothing may be under way after this */
        int late = mine->driver->synchronize(mine->streams[which]);
        if (late && !failed)
            failed = -late;
    }
    return failed;
}
