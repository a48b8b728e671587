/* stage.h - byte sources, each reading from the one below: a file, an unpacker, a member of an
 * archive. input.h puts a FILE on top. */
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
    /* Bytes read, 0 at the end, -1 with the chain's error filled. */
    ssize_t (*pull)(struct chain *chain, struct stage *stage, unsigned char *to, size_t n);
    unsigned char head[STAGE_PEEK]; /* read ahead, not yet handed on */
    size_t head_at, head_n;
    int64_t total;
    unsigned char *block; /* bytes from the stage below */
    z_stream z;
    struct archive *a;
    int tar;   /* 1: a tar */
    int after; /* gzip: a part has ended, another may follow; archive: all is read */
};

/* A file, the stages above it, and the state they share. */
struct chain {
    char *path, *name, *member; /* owned by whoever fills it; member NULL: not asked for */
    char *note; /* a warning about harmless oddities, or NULL; owned like them */
    int fd, seekable;
    int64_t cap; /* of unpacked bytes; 0: none */
    int guards;  /* 1: data that unpack to suspiciously many bytes are refused */
    struct stage stage[STAGE_MAX];
    size_t stages;
    struct err err;
};

/* Each adds a source on top of the last. -1: chain->err. */
void stage_add_file(struct chain *chain);
void stage_add_gzip(struct chain *chain);
int stage_add_filter(struct chain *chain, int filter); /* an ARCHIVE_FILTER_ number */
/* Moves to the wanted member. scan: checks the names of all members, and is then at the end. */
int stage_add_archive(struct chain *chain, int zip, int scan);
void stage_tear_down(struct chain *chain);

ssize_t stage_read(struct chain *chain, struct stage *stage, unsigned char *to, size_t n);
/* Fills head with the bytes that show the form of the data. */
void stage_peek(struct chain *chain, struct stage *stage);
/* -1 when `total` unpacked bytes are more than the cap. */
int stage_over_cap(struct chain *chain, int64_t total);
