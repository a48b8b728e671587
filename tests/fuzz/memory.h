/* memory.h - files in memory, for targets whose reader takes a folder: making a file costs more
 * than most readers. The linker sends file_read() and file_exists() of these targets here (--wrap,
 * in the Makefile); paths outside MEMORY_FOLDER are real ones.
 *
 *     memory_put(0, "config.json", bytes, n);      borrowed until the next call
 *     family_load(&c, MEMORY_FOLDER, NULL, &e); */
#pragma once

#include "tests/fuzz/fuzz.h"

#define MEMORY_FOLDER "/proc/memory-of-fuzz"
enum { MEMORY_FILES = 2 };

static struct memory_file {
    const char *name, *bytes; /* name NULL: none */
    size_t n;
} memory_files[MEMORY_FILES];

static inline void memory_put(size_t i, const char *name, const char *bytes, size_t n)
{
    memory_files[i] = (struct memory_file){name, bytes, n};
}

/* 1: a path of the folder; *file is the file, or NULL if there is none. */
static inline int memory_find(const char *path, const struct memory_file **file)
{
    const size_t n = sizeof MEMORY_FOLDER - 1;
    *file = NULL;
    if (strncmp(path, MEMORY_FOLDER "/", n + 1))
        return 0;
    for (size_t i = 0; i < MEMORY_FILES; i++)
        if (memory_files[i].name && !strcmp(memory_files[i].name, path + n + 1))
            *file = &memory_files[i];
    return 1;
}

int __real_file_read(const char *path, size_t limit, struct buf *b, struct err *e);
int __wrap_file_read(const char *path, size_t limit, struct buf *b, struct err *e);
int __wrap_file_read(const char *path, size_t limit, struct buf *b, struct err *e)
{
    const struct memory_file *file;
    if (!memory_find(path, &file))
        return __real_file_read(path, limit, b, e);
    if (!file)
        return err_set(e, EXIT_NO_INPUT, "%s: no such file", path);
    if (file->n > limit)
        return err_set(e, EXIT_BAD_DATA, "%s: more than %zu bytes", path, limit);
    buf_put(b, file->bytes, file->n);
    return 0;
}

int __real_file_exists(const char *path);
int __wrap_file_exists(const char *path);
int __wrap_file_exists(const char *path)
{
    const struct memory_file *file;
    return memory_find(path, &file) ? file != NULL : __real_file_exists(path);
}
