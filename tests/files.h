/* files.h - makes a temporary folder for a test below /tmp, and puts files there. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char files_root[] = "/tmp/crossover-test-XXXXXX";

static inline void files_fail(const char *what)
{
    printf("Bail out! %s: %s\n", files_root, what);
    exit(EXIT_FAILURE);
}

static inline void files_begin(void)
{
    if (!mkdtemp(files_root))
        files_fail("cannot be made");
}

/* Removes the folder with all its files. */
static inline void files_end(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", files_root);
    if (system(command))
        files_fail("cannot be removed");
}

/* Returns FOLDER/name. The text is valid until the eighth call after this one. */
static inline char *files_at(const char *name)
{
    static char names[8][512];
    static int next;
    char *p = names[next++ % 8];
    snprintf(p, sizeof *names, "%s/%s", files_root, name);
    return p;
}

static inline void files_put(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f))
        files_fail(path);
}

static inline void files_put_text(const char *path, const char *text)
{
    files_put(path, text, strlen(text));
}

/* Writes FOLDER/name, and makes the folders in the name. */
static inline void files_grow(const char *name, const char *text)
{
    char *path = files_at(name);
    for (char *s = path + strlen(files_root); (s = strchr(s + 1, '/'));) {
        *s = 0;
        mkdir(path, 0700);
        *s = '/';
    }
    files_put_text(path, text);
}
