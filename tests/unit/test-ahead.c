/* test-ahead.c - tests which pages of a file the thread of ahead.h brings into the page cache. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/ahead.h"
#include "lib/checkpoint/safetensors.h"
#include "tests/files.h"
#include "tests/tap.h"

/* The system itself reads some MB beyond a byte that is read: SLACK is more. */
enum { MB = 1 << 20, PART = 64 * MB, SLACK = 32 * MB, PAGE = 4096 };

static char path[128];

/* Writes two tensors of PART bytes, and drops the file from the page cache. */
static struct tensors *make(void)
{
    char *bytes = mem_zero(PART, 1);
    const struct tensor list[] = {
        {.name = "a", .dtype = "U8", .rank = 1, .shape = {PART}, .data = (unsigned char *)bytes,
         .bytes = PART},
        {.name = "b", .dtype = "U8", .rank = 1, .shape = {PART}, .data = (unsigned char *)bytes,
         .bytes = PART}};
    struct err e = {0};
    ok(!safetensors_write(path, list, 2, NULL, &e), "a file of two tensors is written");
    free(bytes);
    const int fd = open(path, O_RDONLY);
    ok(!fsync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "it leaves the page cache");
    close(fd);
    return safetensors_open_file(path, &e);
}

/* 1: the page of this byte of a tensor is in the page cache. */
static int is_cached(const struct tensor *tensor, size_t at)
{
    unsigned char *page = (unsigned char *)((uintptr_t)(tensor->data + at) / PAGE * PAGE), here = 0;
    return !mincore(page, PAGE, &here) && here & 1;
}

/* 1: the page enters the page cache within 30 s. */
static int arrives(const struct tensor *tensor, size_t at)
{
    const int64_t end = clock_ns() + INT64_C(30000000000);
    while (!is_cached(tensor, at) && clock_ns() < end)
        usleep(1000);
    return is_cached(tensor, at);
}

/* Tests that the thread has not read byte MB + SLACK of the tensor. */
static void not_cached(const struct tensor *tensor, int keeps)
{
    if (keeps)
        skip("this file system is memory");
    else
        ok(!is_cached(tensor, MB + SLACK), "tensor %s: no byte beyond the distance is read",
           tensor->name);
}

int main(void)
{
    files_begin();
    snprintf(path, sizeof path, "%s/x.safetensors", files_root);
    struct tensors *set = make();
    const struct tensor *a = safetensors_find(set, "a"), *b = safetensors_find(set, "b");
    const size_t first = safetensors_place(set, a);
    ok(first < MB && safetensors_place(set, b) == first + PART, "the place of a tensor in its file");
    const int keeps = is_cached(b, PART - 1); /* as tmpfs does */
    struct ahead *ahead = ahead_start(set, MB);
    ok(arrives(a, MB / 2), "the first bytes are read");
    usleep(200000);
    not_cached(a, keeps);
    ahead_reached(ahead, a);
    ok(arrives(b, MB / 2), "the thread follows the reader");
    not_cached(b, keeps);
    ahead_reached(ahead, b);
    ok(arrives(b, PART - 1), "it reads to the end");
    ahead_stop(ahead);
    ahead = ahead_start(set, MB);
    ahead_reached(ahead, NULL);
    ahead_reached(ahead, a);
    ahead_stop(ahead);
    ahead_reached(NULL, a);
    ahead_stop(NULL);
    ok(is_cached(b, PART - 1), "a thread that waits ends when it is stopped");
    safetensors_close(set);
    files_end();
    return tap_done();
}
