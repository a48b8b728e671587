/* backend.c - opens a back end by its name, and closes it.
 *
 * The CUDA back end is a shared object, $CROSSOVER_CUDA or libcrossover-cuda.so, so that one build
 * of the tools runs on machines with a device and on machines without a driver. The object is
 * searched beside the program and, after `make install`, in ../lib/crossover. Without a driver it
 * is not loaded: the object could only report that there is no device, and constructors of the CUDA
 * runtime would run for nothing. */
#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/ops.h"
#include "lib/base/mem.h"

/* The folder of the running program, with a slash at its end. 0: unknown. */
static int program_folder(char *path, size_t room)
{
    ssize_t n = readlink("/proc/self/exe", path, room - 1);
    if (n <= 0)
        return 0;
    path[n] = 0;
    *(strrchr(path, '/') + 1) = 0;
    return 1;
}

static int has_driver(struct err *e)
{
    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) /* stays loaded for the shared object */
        return 1;
    err_set(e, EXIT_NO_DEVICE, "no NVIDIA driver is installed (%s)", dlerror());
    return 0;
}

/* Loads the shared object of the CUDA back end, which stays loaded. An object that $CROSSOVER_CUDA
 * names may be for another kind of device, so it is loaded without a CUDA driver too. NULL: *e has
 * the reason. */
static void *load_cuda(struct err *e)
{
    static const char *const beside[] = {"", "../lib/crossover/"};
    const char *named = getenv("CROSSOVER_CUDA");
    char folder[PATH_MAX], path[2 * PATH_MAX];
    int known = !named && program_folder(folder, sizeof folder);
    for (size_t i = 0; known && !named && i < sizeof beside / sizeof *beside; i++) {
        snprintf(path, sizeof path, "%s%slibcrossover-cuda.so", folder, beside[i]);
        if (!access(path, F_OK))
            named = path;
    }
    if (!named) {
        err_set(e, EXIT_NO_DEVICE, "this build has no CUDA back end (make CUDA=1): no "
                "libcrossover-cuda.so beside the program");
        return NULL;
    }
    if (named == path && !has_driver(e))
        return NULL;
    void *object = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        err_set(e, EXIT_NO_DEVICE, "%s", dlerror());
    return object;
}

/* Loads the CUDA back end, which fills *backend. index: a device, or -1 for the best one. */
static int open_cuda(struct backend *backend, int index, struct err *e)
{
    int (*door)(struct backend *, int, struct err *);
    void *object = load_cuda(e);
    if (!object)
        return -1;
    void *symbol = dlsym(object, "crossover_cuda_open");
    if (!symbol)
        return err_set(e, EXIT_NO_DEVICE, "%s", dlerror());
    memcpy(&door, &symbol, sizeof door); /* C has no cast from data to function pointers */
    backend->witness = err_witness();
    return door(backend, index, e);
}

/* "cuda:N" gives N, "cuda" gives -1 (any device), another name gives -2. */
static int cuda_index(const char *device)
{
    char *end;
    if (!strcmp(device, "cuda"))
        return -1;
    if (strncmp(device, "cuda:", 5) || !isdigit((unsigned char)device[5]))
        return -2;
    long n = strtol(device + 5, &end, 10);
    return *end || n > INT_MAX ? -2 : (int)n;
}

static int open_host(struct backend *backend, const struct ops *ops, struct err *e)
{
    if (!ops) /* no such instruction set: the caller knows which one it asked for */
        return err_set(e, EXIT_NO_DEVICE, "%s", "");
    backend->ops = ops;
    snprintf(backend->level, sizeof backend->level, "%s", ops->level);
    return 0;
}

static int open_named(struct backend *backend, const char *device, const char *isa, struct err *e)
{
    int index = cuda_index(device);
    struct err why = {0};
    if (!strcmp(device, "auto")) {
        if (!isa && !open_cuda(backend, -1, &why))
            return 0;
        /* a wrong name or file, not a missing device */
        if (why.code == EXIT_BAD_USAGE || why.code == EXIT_BAD_DATA)
            return err_set(e, why.code, "%s", why.text);
        return open_host(backend, ops_cpu(isa), e);
    }
    if (!strcmp(device, "cpu"))
        return open_host(backend, ops_cpu(isa), e);
    if (!strcmp(device, "ref"))
        return open_host(backend, isa ? NULL : &ops_ref, e);
    if (index >= -1)
        return isa ? open_host(backend, NULL, e) : open_cuda(backend, index, e);
    return err_set(e, EXIT_BAD_USAGE, "expected auto, ref, cpu, cuda or cuda:N, got '%s'", device);
}

struct backend *backend_open(const char *device, const char *isa, size_t threads, size_t mem_cap,
                             struct err *e)
{
    struct backend *backend = mem_zero(1, sizeof *backend);
    backend->act = DTYPE_F32;
    backend->memory.cap = mem_cap;
    if (open_named(backend, device, isa, e)) {
        free(backend);
        return NULL;
    }
    backend->pool = pool_new(
        threads); /* only now, because a level may have asked Linux for permission (amx.h), which
                   * must happen before threads start */
    return backend;
}

void backend_close(struct backend *backend)
{
    if (!backend)
        return;
    if (backend->ops->close)
        backend->ops->close(backend);
    pool_free(backend->pool);
    free(backend);
}
