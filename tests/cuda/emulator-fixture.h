/* emulator-fixture.h - shared parts of the tests of the emulated device: arrays, launches, and
 * processes that must die of a planted mistake. */
#pragma once

#include "kernels/cuda/device.cuh"

#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tests/tap.h"

#if defined __SANITIZE_ADDRESS__
enum { ADDRESSES_CHECKED = 1, THREADS_WATCHED = 0 };
#elif defined __SANITIZE_THREAD__
enum { ADDRESSES_CHECKED = 0, THREADS_WATCHED = 1 };
#else
enum { ADDRESSES_CHECKED = 0, THREADS_WATCHED = 0 };
#endif

/* An array on the device that lives as long as its test. */
template <class T> struct array {
    T *p = nullptr;
    size_t n;
    explicit array(size_t count) : n(count)
    {
        cudaMalloc(&p, n * sizeof(T));
    }
    explicit array(const std::vector<T> &v) : array(v.size())
    {
        cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice);
    }
    ~array()
    {
        cudaFree(p);
    }
    std::vector<T> values() const
    {
        std::vector<T> v(n);
        cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost);
        return v;
    }
};

/* Runs a kernel on the default stream and waits for its end. */
template <class... P, class... A>
static void run(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, A... args)
{
    start_kernel(kernel, grid, block, shared, nullptr, false, SHARED_PART, 1u, args...);
    cudaDeviceSynchronize();
}

/* Returns 1 if act(), in a child process, does not reach its end and prints `words`. */
[[maybe_unused]] static int dies(void (*act)(), const char *words)
{
    int ends[2], status;
    char text[4096];
    size_t got = 0;
    fflush(stdout);
    if (pipe(ends))
        return 0;
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], 2);
        act();
        THREADS_WATCHED ? exit(0) : _exit(0); /* ThreadSanitizer reports a race at exit */
    }
    close(ends[1]);
    for (ssize_t r; (r = read(ends[0], text + got, sizeof text - 1 - got)) > 0;)
        got += static_cast<size_t>(r);
    text[got] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    int dead = !WIFEXITED(status) || WEXITSTATUS(status);
    if (!dead || !strstr(text, words))
        printf("# status %x, said: %.300s\n", static_cast<unsigned>(status), text);
    return dead && strstr(text, words);
}

[[maybe_unused]] static void set_seed(int seed)
{
    setenv("EMULATE_SEED", std::to_string(seed).c_str(), 1);
}

/* Seeds that a test tries. */
enum { SEEDS = 20 };
