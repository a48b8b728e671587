/* memory.h - keeps files in memory, for targets whose reader takes a path: making a file costs more
 * time than most readers. The linker sends calls that read whole files, streams of records and data
 * sets to this file (--wrap, in the Makefile). Paths that no memory_put() named are real files, but
 * streams are always in memory.
 *
 *     memory_put(0, MEMORY_FOLDER "/config.json", bytes, n);      borrowed until the next call
 *     family_load(&c, MEMORY_FOLDER, NULL, &e); */
#pragma once

#include "lib/base/archive/input.h"
#include "lib/checkpoint/hub.h"
#include "lib/checkpoint/safetensors.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY_FOLDER "/proc/memory-of-fuzz"
enum { MEMORY_FILES = 2 };

static struct memory_file {
    const char *path, *bytes; /* path NULL: no file */
    size_t n;
} memory_files[MEMORY_FILES];

static inline void memory_put(size_t i, const char *path, const char *bytes, size_t n)
{
    memory_files[i] = (struct memory_file){path, bytes, n};
}

/* memory_put() with a part of an input. */
static inline void memory_put_part(size_t i, const char *path, const struct buf *part)
{
    memory_put(i, path, part->data ? part->data : "", part->len);
}

static inline const struct memory_file *memory_find(const char *path)
{
    for (size_t i = 0; i < MEMORY_FILES; i++)
        if (memory_files[i].path && !strcmp(memory_files[i].path, path))
            return &memory_files[i];
    return NULL;
}

static inline int memory_is(const char *path)
{
    return !strncmp(path, MEMORY_FOLDER, sizeof MEMORY_FOLDER - 1);
}

/* ---- whole files ---- */

int __real_file_read(const char *path, size_t limit, struct buf *b, struct err *e);
int __wrap_file_read(const char *path, size_t limit, struct buf *b, struct err *e);
int __wrap_file_read(const char *path, size_t limit, struct buf *b, struct err *e)
{
    const struct memory_file *file = memory_find(path);
    if (!file && memory_is(path))
        return err_set(e, EXIT_NO_INPUT, "%s: no such file", path);
    if (!file)
        return __real_file_read(path, limit, b, e);
    if (file->n > limit)
        return err_set(e, EXIT_BAD_DATA, "%s: more than %zu bytes", path, limit);
    buf_put(b, file->bytes, file->n);
    return 0;
}

int __real_file_exists(const char *path);
int __wrap_file_exists(const char *path);
int __wrap_file_exists(const char *path)
{
    return memory_find(path) || (!memory_is(path) && __real_file_exists(path));
}

/* The real function asks the system for the real name of a folder; test-hub.c and the target `hub`
 * test it. */
void __wrap_hub_model_name(const char *folder, char name[HUB_NAME]);
void __wrap_hub_model_name(const char *folder, char name[HUB_NAME])
{
    snprintf(name, HUB_NAME, "%s", memory_is(folder) ? "memory" : "folder");
}

/* ---- weights ---- */

static struct memory_file memory_weights; /* bytes NULL: the weights of the folder */

struct tensors *__real_safetensors_open_folder(const char *folder, struct err *e);
struct tensors *__wrap_safetensors_open_folder(const char *folder, struct err *e);
struct tensors *__wrap_safetensors_open_folder(const char *folder, struct err *e)
{
    return memory_weights.bytes
               ? safetensors_open_file(fuzz_file(memory_weights.bytes, memory_weights.n), e)
               : __real_safetensors_open_folder(folder, e);
}

/* ---- streams ---- */

struct memory_stream { /* what a struct input points to */
    struct memory_file left;
    FILE *f; /* opened on request */
};

struct input *__wrap_input_open(const char *path, const char *member, int64_t most, struct err *e);
FILE *__wrap_input_file(struct input *in);
ssize_t __wrap_input_read(struct input *in, char *to, size_t n);
int __wrap_input_failed(const struct input *in);
int __wrap_input_check(const struct input *in, struct err *e);
const char *__wrap_input_note(const struct input *in);
const char *__wrap_input_name(const struct input *in);
void __wrap_input_close(struct input *in);

struct input *__wrap_input_open(const char *path, const char *member, int64_t most, struct err *e)
{
    const struct memory_file *file = memory_find(path);
    (void)member, (void)most;
    if (!file) {
        err_set(e, EXIT_NO_INPUT, "%s: not in memory", path);
        return NULL;
    }
    struct memory_stream *in = mem_zero(1, sizeof *in);
    in->left = *file;
    return (struct input *)in;
}

FILE *__wrap_input_file(struct input *stream)
{
    struct memory_stream *in = (struct memory_stream *)stream;
    if (!in->f) {
        in->f = fmemopen((void *)(uintptr_t)in->left.bytes, in->left.n, "r");
        setvbuf(in->f, NULL, _IOFBF, 512);
    }
    return in->f;
}

ssize_t __wrap_input_read(struct input *stream, char *to, size_t n)
{
    struct memory_stream *in = (struct memory_stream *)stream;
    n = n < in->left.n ? n : in->left.n;
    memcpy(to, in->left.bytes, n);
    in->left.bytes += n;
    in->left.n -= n;
    return (ssize_t)n;
}

int __wrap_input_failed(const struct input *in)
{
    return !in;
}

int __wrap_input_check(const struct input *in, struct err *e)
{
    return in ? 0 : err_set(e, EXIT_IO, "no input");
}

const char *__wrap_input_note(const struct input *in)
{
    (void)in;
    return NULL;
}

const char *__wrap_input_name(const struct input *in)
{
    return ((const struct memory_stream *)in)->left.path;
}

void __wrap_input_close(struct input *stream)
{
    struct memory_stream *in = (struct memory_stream *)stream;
    if (in && in->f)
        fclose(in->f);
    free(in);
}
