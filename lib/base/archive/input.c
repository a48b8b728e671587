/* input.c - a chain of byte sources behind one FILE; see input.h and stage.h.
 *
 *     file -> [gzip | bzip2 | xz | zstd] -> [member of a tar | zip] -> FILE (fopencookie)
 *
 * The first bytes of a source decide which stage is added on top: at most one unpacker and one
 * archive. The chain keeps the error of a source for input_check, because a reader of a FILE sees
 * only a short read. */
#include "lib/base/archive/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/archive/stage.h"

static const int64_t DEFAULT_CAP = (int64_t)8 << 30;

struct input {
    struct chain chain;
    struct stat before; /* state of the file when it was opened */
    int64_t total;      /* bytes handed out */
    FILE *f;
};

/* ---- the form of the data ---- */

enum form { FORM_PLAIN, FORM_GZIP, FORM_BZIP2, FORM_XZ, FORM_ZSTD, FORM_ZIP, FORM_TAR,
            FORM_PARQUET, FORM_ARROW, FORM_UTF16, FORM_GGUF, FORM_OTHER };

static int begins(const struct stage *stage, const char *magic, size_t n)
{
    return stage->head_n >= n && !memcmp(stage->head, magic, n);
}

static enum form sniff(const struct stage *stage)
{
    if (begins(stage, "\x1f\x8b", 2))
        return FORM_GZIP;
    if (begins(stage, "BZh", 3) && stage->head_n >= 10 &&
        (!memcmp(stage->head + 4, "1AY&SY", 6) || !memcmp(stage->head + 4, "\x17rE8P\x90", 6)))
        return FORM_BZIP2;
    if (begins(stage, "\xfd" "7zXZ\0", 6))
        return FORM_XZ;
    if (begins(stage, "\x28\xb5\x2f\xfd", 4))
        return FORM_ZSTD;
    if (begins(stage, "PK\3\4", 4) || begins(stage, "PK\5\6", 4))
        return FORM_ZIP;
    if (begins(stage, "PAR1", 4) && (stage->head_n == 4 || stage->head[4] < 0x20))
        return FORM_PARQUET;
    if (begins(stage, "ARROW1", 6) || begins(stage, "\xff\xff\xff\xff", 4)) /* file or stream */
        return FORM_ARROW;
    if (begins(stage, "\xff\xfe", 2) || begins(stage, "\xfe\xff", 2))
        return FORM_UTF16;
    if (begins(stage, "GGUF", 4) && stage->head_n > 7 && !stage->head[6] && !stage->head[7])
        return FORM_GGUF;
    if (begins(stage, "7z\xbc\xaf", 4) || begins(stage, "\x04\x22\x4d\x18", 4) ||
        begins(stage, "Rar!", 4))
        return FORM_OTHER;
    if (stage->head_n >= 262 && !memcmp(stage->head + 257, "ustar", 5))
        return FORM_TAR;
    return FORM_PLAIN;
}

static int refuse_form(struct chain *chain, enum form form)
{
    if (form == FORM_PARQUET)
        return err_set(&chain->err, EXIT_BAD_DATA,
                       "%s: a parquet file; convert it first: duckdb -c "
                       "\"COPY (FROM '%s') TO 'out.jsonl'\"", chain->path, chain->path);
    if (form == FORM_ARROW)
        return err_set(&chain->err, EXIT_BAD_DATA, "%s: an Arrow file; convert it first: duckdb -c "
                       "\"INSTALL nanoarrow FROM community; LOAD nanoarrow; COPY (FROM "
                       "read_arrow('%s')) TO 'out.jsonl'\"", chain->path, chain->path);
    if (form == FORM_UTF16)
        return err_set(&chain->err, EXIT_BAD_DATA, "%s: UTF-16; expected UTF-8: convert it first: "
                       "iconv -f UTF-16 -t UTF-8 '%s' > out", chain->path, chain->path);
    if (form == FORM_GGUF)
        return err_set(&chain->err, EXIT_BAD_DATA, "%s: a GGUF model; expected data (JSON, NDJSON, "
                       "text, or one of them packed)", chain->path);
    if (form == FORM_OTHER)
        return err_set(&chain->err, EXIT_BAD_DATA,
                       "%s: packed as 7z, rar or lz4; expected .gz, .bz2, "
                       ".xz, .zst, .zip or .tar: unpack it first", chain->path);
    return err_set(&chain->err, EXIT_BAD_DATA, "%s: packed twice; unpack it once first",
                   chain->path);
}

static int add_unpacker(struct chain *chain, enum form form)
{
    switch (form) {
    case FORM_GZIP: stage_add_gzip(chain); return 0;
    case FORM_BZIP2: return stage_add_filter(chain, ARCHIVE_FILTER_BZIP2);
    case FORM_XZ: return stage_add_filter(chain, ARCHIVE_FILTER_XZ);
    default: return stage_add_filter(chain, ARCHIVE_FILTER_ZSTD);
    }
}

/* Builds the chain. Returns 1 with an archive on top, 0 without one, -1 with chain->err filled. */
static int build(struct chain *chain, int64_t max_bytes, int scan)
{
    struct stage *top = &chain->stage[0];
    stage_add_file(chain);
    stage_peek(chain, top);
    enum form form = sniff(top);
    if (!chain->err.code && form >= FORM_GZIP && form <= FORM_ZSTD) {
        chain->cap = max_bytes ? max_bytes : DEFAULT_CAP;
        if (add_unpacker(chain, form))
            return -1;
        top++;
        stage_peek(chain, top);
        form = sniff(top);
        if (form == FORM_ZIP || (form >= FORM_GZIP && form <= FORM_ZSTD))
            return refuse_form(chain, form);
    }
    if (chain->err.code)
        return -1;
    if (form >= FORM_PARQUET)
        return refuse_form(chain, form);
    if (form == FORM_PLAIN)
        return chain->member ? err_set(&chain->err, EXIT_BAD_DATA,
                                       "%s: not an archive, so it has no "
                                       "member '%s'",
                                       chain->path, chain->member)
                             : 0;
    chain->cap = max_bytes ? max_bytes : DEFAULT_CAP;
    return stage_add_archive(chain, form == FORM_ZIP, scan) ? -1 : 1;
}

/* ---- the FILE ---- */

ssize_t input_read(struct input *in, char *to, size_t n)
{
    struct chain *chain = &in->chain;
    ssize_t got = stage_read(chain, &chain->stage[chain->stages - 1], (unsigned char *)to, n);
    if (got > 0) {
        in->total += got;
        if (stage_over_cap(chain, in->total))
            got = -1;
    }
    if (got < 0)
        errno = EIO;
    return got;
}

static ssize_t cookie_read(void *cookie, char *to, size_t n)
{
    return input_read(cookie, to, n);
}

static int open_path(struct input *in)
{
    struct chain *chain = &in->chain;
    chain->fd = strcmp(chain->path, "-") ? open(chain->path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (chain->fd < 0)
        return err_set(&chain->err, EXIT_NO_INPUT, "%s: %s", chain->path, strerror(errno));
    if (fstat(chain->fd, &in->before))
        return err_set(&chain->err, EXIT_IO, "%s: %s", chain->path, strerror(errno));
    if (S_ISDIR(in->before.st_mode))
        return err_set(&chain->err, EXIT_NO_INPUT, "%s: is a folder; expected a file", chain->path);
    chain->seekable = S_ISREG(in->before.st_mode) && lseek(chain->fd, 0, SEEK_CUR) == 0;
    return 0;
}

/* An archive that can be read twice is scanned first, so that a wrong --member fails at once. */
static int open_chain(struct input *in, int64_t max_bytes)
{
    struct chain *chain = &in->chain;
    chain->cap = max_bytes;
    chain->guards = !max_bytes;
    int r = open_path(in);
    if (r == 0)
        r = build(chain, max_bytes, chain->seekable);
    if (r != 1 || !chain->seekable)
        return r < 0 ? -1 : 0;
    stage_tear_down(chain);
    if (lseek(chain->fd, 0, SEEK_SET) < 0)
        return err_set(&chain->err, EXIT_IO, "%s: %s", chain->path, strerror(errno));
    return build(chain, max_bytes, 0) < 0 ? -1 : 0;
}

struct input *input_open(const char *path, const char *member, int64_t max_bytes, struct err *e)
{
    struct input *in = mem_zero(1, sizeof *in);
    struct chain *chain = &in->chain;
    chain->path = mem_text(path);
    chain->name = mem_text(path);
    chain->member = member ? mem_text(member) : NULL;
    chain->fd = -1;
    if (!open_chain(in, max_bytes)) {
        in->f = fopencookie(in, "r", (cookie_io_functions_t){.read = cookie_read});
        if (in->f)
            return in;
        err_set(&chain->err, EXIT_INTERNAL, "%s: cannot make a stream", path);
    }
    err_set(e, chain->err.code, "%s", chain->err.text);
    input_close(in);
    return NULL;
}

FILE *input_file(struct input *in)
{
    return in->f;
}

const char *input_note(const struct input *in)
{
    return in->chain.note;
}

const char *input_name(const struct input *in)
{
    return in->chain.name;
}

int input_failed(const struct input *in)
{
    return in->chain.err.code != 0;
}

int input_check(const struct input *in, struct err *e)
{
    struct stat now;
    if (in->chain.err.code)
        return err_set(e, in->chain.err.code, "%s", in->chain.err.text);
    if (S_ISREG(in->before.st_mode) && !fstat(in->chain.fd, &now) &&
        (now.st_size != in->before.st_size || now.st_mtim.tv_sec != in->before.st_mtim.tv_sec ||
         now.st_mtim.tv_nsec != in->before.st_mtim.tv_nsec))
        return err_set(e, EXIT_IO, "%s: changed while it was read", in->chain.path);
    return 0;
}

void input_close(struct input *in)
{
    if (!in)
        return;
    if (in->f)
        fclose(in->f);
    stage_tear_down(&in->chain);
    if (in->chain.fd > STDIN_FILENO)
        close(in->chain.fd);
    free(in->chain.path);
    free(in->chain.name);
    free(in->chain.member);
    free(in->chain.note);
    free(in);
}
