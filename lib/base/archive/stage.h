/* stage.h - a chain of byte sources: a file, an unpacker, a member of an archive. Each source reads
 * from the source below it. input.h makes a FILE of the top one. */
#pragma once

#include <archive.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <zlib.h>

#include "lib/base/err.h"

enum { STAGE_PEEK = 512, STAGE_MAX = 3 };

struct chain;
struct stage {
    struct stage *below;
    /* Reads at most n bytes. Returns their number, 0 at the end, -1 with chain->err filled. */
    ssize_t (*pull)(struct chain *chain, struct stage *stage, unsigned char *to, size_t n);
    unsigned char head[STAGE_PEEK]; /* bytes that were read ahead and not yet handed on */
    size_t head_at, head_n;
    int64_t total;        /* bytes that this source has given */
    unsigned char *block; /* bytes from the stage below */
    z_stream z;
    struct archive *a;
    int tar;   /* 1: the archive is a tar */
    int after; /* 1: gzip: a part has ended, and another may follow; archive: all is read */
};

/* A file, the stages above it, and the state they share. */
struct chain {
    char *path, *name, *member; /* owned by the code that sets them; member NULL: none is wanted */
    char *note; /* a warning about a harmless oddity, or NULL; owned as path is */
    int fd, seekable;
    int64_t cap; /* most unpacked bytes; 0: no limit */
    int guards;  /* 1: data that unpack to suspiciously many bytes are refused */
    struct stage stage[STAGE_MAX];
    size_t stages;
    struct err err;
};

/* The functions stage_add_...() add a source on top of the last one. They return -1 with chain->err
 * filled. */
void stage_add_file(struct chain *chain);
void stage_add_gzip(struct chain *chain);
int stage_add_filter(struct chain *chain, int filter); /* an ARCHIVE_FILTER_ number */
/* Adds an archive and moves to the wanted member. scan 1: reads the names of all members to refuse
 * an ambiguous choice; the archive is then at its end. */
int stage_add_archive(struct chain *chain, int zip, int scan);
void stage_tear_down(struct chain *chain);

ssize_t stage_read(struct chain *chain, struct stage *stage, unsigned char *to, size_t n);
/* Fills stage->head with the bytes that show the form of the data. */
void stage_peek(struct chain *chain, struct stage *stage);
/* Returns -1 if `total` unpacked bytes exceed chain->cap or, with chain->guards, are suspiciously
 * many for the size of the packed file. */
int stage_over_cap(struct chain *chain, int64_t total);
