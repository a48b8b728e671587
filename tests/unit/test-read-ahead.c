/* test-read-ahead.c - tests which pages of a file the thread of read_ahead.h brings into the page
 * cache. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/read_ahead.h"
#include "lib/checkpoint/safetensors.h"
#include "tests/files.h"
#include "tests/tap.h"

/* The system itself reads some MB beyond a byte that is read: SLACK is more. INSIDE is a byte
 * inside a piece that the thread reads. */
enum { MB = 1 << 20, PART = 64 * MB, SLACK = 32 * MB, INSIDE = MB / 2 + 20000 };

static char path[128];

/* Writes two tensors of PART bytes. */
static struct tensors *make(struct err *e)
{
    char *bytes = mem_zero(PART, 1);
    const struct tensor list[] = {
        {.name = "a", .dtype = "U8", .rank = 1, .shape = {PART}, .data = (unsigned char *)bytes,
         .bytes = PART},
        {.name = "b", .dtype = "U8", .rank = 1, .shape = {PART}, .data = (unsigned char *)bytes,
         .bytes = PART}};
    ok(!safetensors_write(path, list, 2, NULL, e), "a file of two tensors is written");
    free(bytes);
    return safetensors_open_file(path, e);
}

static void leave_cache(void)
{
    const int fd = open(path, O_RDONLY);
    ok(!fsync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "the file leaves the cache");
    close(fd);
}

/* 1: the page of this byte of a tensor is in the page cache. */
static int is_cached(const struct tensor *tensor, size_t at)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char here = 0;
    return !mincore((void *)((uintptr_t)(tensor->data + at) / page * page), page, &here) &&
           here & 1;
}

/* Tests that the page enters the page cache, within 30 s. */
static void arrives(const struct tensor *tensor, size_t at, const char *what)
{
    const int64_t end = clock_ns() + INT64_C(30000000000);
    while (!is_cached(tensor, at) && clock_ns() < end)
        usleep(1000);
    ok(is_cached(tensor, at), "%s", what);
}

/* Tests that byte MB + SLACK of the tensor is not in the page cache. */
static void is_far(const struct tensor *tensor)
{
    usleep(200000);
    ok(!is_cached(tensor, MB + SLACK), "tensor %s: a byte beyond the distance is not read",
       tensor->name);
}

static void test_order(const struct tensors *set, const struct tensor *a, const struct tensor *b)
{
    struct read_ahead *ahead = read_ahead_start(set, MB);
    arrives(a, INSIDE, "the first bytes are read");
    is_far(a);
    read_ahead_reached(ahead, a);
    arrives(b, INSIDE, "the thread follows the reader");
    is_far(b);
    read_ahead_reached(ahead, b);
    arrives(b, PART - 1, "the thread reads to the end");
    read_ahead_stop(ahead);
    leave_cache();
    ahead = read_ahead_start(set, MB);
    read_ahead_reached(ahead, b);
    arrives(b, INSIDE, "the thread goes to the tensor that is named");
    is_far(a);
    read_ahead_reached(ahead, a);
    arrives(a, PART / 2 + INSIDE, "the thread goes back to an earlier tensor");
    read_ahead_stop(ahead);
}

int main(void)
{
    struct err e = {0};
    files_begin();
    snprintf(path, sizeof path, "%s/x.safetensors", files_root);
    struct tensors *set = make(&e);
    const struct tensor *a = safetensors_find(set, "a"), *b = safetensors_find(set, "b");
    const size_t first = safetensors_place(set, a);
    ok(first < MB && safetensors_place(set, b) == first + PART, "the place of a tensor");
    const int shows = is_cached(a, PART / 2); /* it was just written */
    leave_cache();
    if (!shows)
        skip("this file system does not show what is in the page cache");
    else if (is_cached(a, MB + SLACK) || is_cached(b, MB + SLACK))
        skip("this file system is in memory");
    else
        test_order(set, a, b);
    struct read_ahead *ahead = read_ahead_start(set, MB);
    read_ahead_reached(ahead, NULL);
    read_ahead_reached(ahead, a);
    read_ahead_stop(ahead);
    read_ahead_reached(NULL, a);
    read_ahead_stop(NULL);
    ok(!safetensors_unchanged(set, &e), "calls with NULL or after the end do nothing");
    safetensors_close(set);
    files_end();
    return tap_done();
}
