/* stage.h - the inside of input.h: byte sources that stand on one another. Only input.c uses it. */
#ifndef BASE_STAGE_H
#define BASE_STAGE_H

#include <archive.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <zlib.h>

#include "lib/base/err.h"
#include "lib/base/input.h"

enum { STAGE_PEEK = 512, STAGE_MAX = 3 };

struct stage {
    struct stage *below;
    /* Bytes read, 0 at the end, -1 with the input's error filled. */
    ssize_t (*pull)(struct input *in, struct stage *s, unsigned char *to, size_t n);
    unsigned char head[STAGE_PEEK]; /* peeked, not yet handed on */
    size_t head_at, head_n;
    int64_t total;
    unsigned char *block; /* what came from below */
    z_stream z;
    struct archive *a;
    int after; /* gzip: after one part, maybe before another; archive: all is read */
};

struct input {
    char *path, *name, *member; /* owned; member NULL: not asked for */
    int fd, seekable;
    struct stat before;
    int64_t cap, total; /* cap 0: none */
    struct stage stage[STAGE_MAX];
    size_t stages;
    FILE *f;
    struct err err;
};

/* Each adds a source on top of the last. -1: in->err. */
void stage_add_file(struct input *in);
void stage_add_gzip(struct input *in);
int stage_add_filter(struct input *in, int filter); /* an ARCHIVE_FILTER_ number */
/* Stands on the wanted member. scan: looks at all members first, and is then at the end. */
int stage_add_archive(struct input *in, int zip, int scan);
void stage_tear_down(struct input *in);

ssize_t stage_read(struct input *in, struct stage *s, unsigned char *to, size_t n);
/* Fills head with what is needed to know the form of the data. */
void stage_peek(struct input *in, struct stage *s);
/* -1 when `total` unpacked bytes are more than the cap. */
int stage_over_cap(struct input *in, int64_t total);

#endif
