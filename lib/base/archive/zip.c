/* zip.c - the central directory of a zip against its local headers; see zip.h.
 *
 * The members themselves are libarchive's to read. Here only what is said of them is compared: a
 * number that a header leaves open (zeros, for which a descriptor follows the data, or all ones,
 * for which an extra field does) is no contradiction. Every offset and length is read with pread,
 * so whatever a directory points to, nothing outside the file is touched.
 *
 * Source: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16 and 4.5.3.
 */
#include "lib/base/archive/zip.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

enum { END = 22, END64 = 56, LOCATOR = 20, CENTRAL = 46, LOCAL = 30, MAX_MEMBERS = 100000,
       SHOWN = 200, FOLLOWS = 1 << 3, MASKED = 1 << 13 };
static const uint32_t OPEN = 0xffffffff; /* the number is elsewhere */

struct zip {
    int fd;
    const char *path;
    int64_t size;
    uint64_t members, at; /* of the central directory */
};
/* What a header says. */
struct said {
    unsigned flags, method, name_n, extra_n;
    uint32_t crc;
    uint64_t packed, unpacked, local; /* local: where that header lies, in the directory only */
    uint64_t end;                     /* behind the extra fields */
    unsigned char name[UINT16_MAX], extra[UINT16_MAX];
};

static uint64_t number(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    while (bytes--)
        v = v << 8 | p[bytes];
    return v;
}

static int broken(const struct zip *z, const char *what, struct err *e)
{
    return err_set(e, EXIT_BAD_DATA, "%s: zip: %s", z->path, what);
}

/* Exactly those bytes of the file. */
static int get(const struct zip *z, uint64_t at, void *to, size_t n, struct err *e)
{
    if (at > (uint64_t)z->size || n > (uint64_t)z->size - at)
        return broken(z, "its directory points outside of the file: cut, or changed", e);
    ssize_t got;
    do
        got = pread(z->fd, to, n, (off_t)at);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)n)
        return 0;
    return err_set(e, EXIT_IO, "%s: read error at byte %llu: %s", z->path, (unsigned long long)at,
                   got < 0 ? strerror(errno) : "changed while it was read");
}

/* The directory of a zip with large numbers; `end` is where the plain end record lies. */
static int find_large(struct zip *z, uint64_t end, struct err *e)
{
    unsigned char l[LOCATOR], r[END64];
    if (end < LOCATOR || get(z, end - LOCATOR, l, LOCATOR, e))
        return broken(z, "its end record is broken", e);
    if (memcmp(l, "PK\6\7", 4))
        return 0; /* the number is what it seems */
    if (get(z, number(l + 8, 8), r, END64, e))
        return -1;
    if (memcmp(r, "PK\6\6", 4))
        return broken(z, "its end record is broken", e);
    z->members = number(r + 32, 8);
    z->at = number(r + 48, 8);
    return 0;
}

/* The end record, before a comment of any text. */
static int find_directory(struct zip *z, struct err *e)
{
    size_t n = (size_t)(z->size < END + UINT16_MAX ? z->size : END + UINT16_MAX), i;
    unsigned char *tail = mem_alloc(n + 1), *r = NULL;
    int bad = get(z, (uint64_t)z->size - n, tail, n, e);
    for (i = n < END ? 0 : n - END + 1; !bad && !r && i-- > 0;)
        if (!memcmp(tail + i, "PK\5\6", 4) && number(tail + i + 20, 2) <= n - END - i)
            r = tail + i;
    if (!bad && !r)
        bad = broken(z, "no central directory at its end: the file is cut", e);
    if (!bad) {
        z->members = number(r + 10, 2);
        z->at = number(r + 16, 4);
        if (z->members == UINT16_MAX || number(r + 12, 4) == OPEN || z->at == OPEN)
            bad = find_large(z, (uint64_t)z->size - n + i, e);
    }
    free(tail);
    return bad;
}

/* Numbers that do not fit their 32 bits stand, in this order, in an extra field. */
static void read_large(struct said *s)
{
    uint64_t *const all[] = {&s->unpacked, &s->packed, &s->local};
    size_t n = 0, i = 0, at;
    while (i + 4 <= s->extra_n && number(s->extra + i, 2) != 1)
        i += 4 + (size_t)number(s->extra + i + 2, 2);
    if (i + 4 <= s->extra_n)
        n = (size_t)number(s->extra + i + 2, 2);
    at = i + 4;
    for (size_t k = 0; k < 3; k++)
        if (*all[k] == OPEN && n >= 8 && at + 8 <= s->extra_n) {
            *all[k] = number(s->extra + at, 8);
            at += 8;
            n -= 8;
        }
}

/* What a header says whose numbers, in the order that both have, begin at p; `names`: where they
 * end and the name begins. */
static int read_said(const struct zip *z, struct said *s, const unsigned char *p, uint64_t names,
                     struct err *e)
{
    s->flags = (unsigned)number(p, 2);
    s->method = (unsigned)number(p + 2, 2);
    s->crc = (uint32_t)number(p + 8, 4);
    s->packed = number(p + 12, 4);
    s->unpacked = number(p + 16, 4);
    s->name_n = (unsigned)number(p + 20, 2);
    s->extra_n = (unsigned)number(p + 22, 2);
    s->end = names + s->name_n + s->extra_n;
    if (get(z, names, s->name, s->name_n, e) || get(z, names + s->name_n, s->extra, s->extra_n, e))
        return -1;
    read_large(s);
    return 0;
}

/* later: the local header leaves it open with a zero. */
static int differ(uint64_t central, uint64_t local, int later)
{
    return central != local && !(later && !local);
}

/* What the headers of a member contradict each other in, or NULL. */
static const char *contradiction(const struct said *central, const struct said *local)
{
    if (central->name_n != local->name_n || memcmp(central->name, local->name, local->name_n))
        return "name";
    if (local->flags & MASKED) /* the directory is encrypted, and the rest of the header hidden */
        return NULL;
    int later = (local->flags & FOLLOWS) != 0;
    return central->method != local->method                      ? "method"
           : differ(central->crc, local->crc, later)             ? "CRC"
           : differ(central->packed, local->packed, later)       ? "packed size"
           : differ(central->unpacked, local->unpacked, later)   ? "size"
                                                                 : NULL;
}

/* The CRC that follows the data where the header left it open, with or without a signature. */
static const char *check_descriptor(const struct zip *z, const struct said *central,
                                    const struct said *local, struct err *e)
{
    unsigned char d[8];
    if (!(local->flags & FOLLOWS) || local->flags & MASKED || local->crc)
        return NULL;
    if (get(z, local->end + central->packed, d, sizeof d, e))
        return "packed size";
    int has_magic = !memcmp(d, "PK\7\10", 4);
    return number(has_magic ? d + 4 : d, 4) == central->crc ? NULL : "CRC";
}

/* One member of the directory, which the next follows at *at. */
static int check_member(const struct zip *z, uint64_t *at, struct said said[2], struct err *e)
{
    unsigned char c[CENTRAL], l[LOCAL];
    if (get(z, *at, c, CENTRAL, e))
        return -1;
    if (memcmp(c, "PK\1\2", 4))
        return broken(z, "its central directory is broken", e);
    said[0].local = number(c + 42, 4);
    said[1].local = 0;
    if (read_said(z, &said[0], c + 8, *at + CENTRAL, e) || get(z, said[0].local, l, LOCAL, e))
        return -1;
    *at = said[0].end + number(c + 32, 2);
    if (memcmp(l, "PK\3\4", 4))
        return broken(z, "its central directory names a place where no member begins", e);
    if (read_said(z, &said[1], l + 6, said[0].local + LOCAL, e))
        return -1;
    const char *what = contradiction(&said[0], &said[1]);
    if (!what)
        what = check_descriptor(z, &said[0], &said[1], e);
    if (!what)
        return 0;
    int shown = said[0].name_n < SHOWN ? (int)said[0].name_n : SHOWN;
    return err_set(e, EXIT_BAD_DATA, "%s: zip: member '%.*s': the central directory has another %s "
                   "than the member itself: the file was changed or damaged", z->path, shown,
                   (const char *)said[0].name, what);
}

int zip_check(int fd, const char *path, struct err *e)
{
    struct zip z = {.fd = fd, .path = path};
    struct stat st;
    if (fstat(fd, &st))
        return err_set(e, EXIT_IO, "%s: %s", path, strerror(errno));
    z.size = st.st_size;
    if (find_directory(&z, e))
        return -1;
    if (z.members > MAX_MEMBERS)
        return err_set(e, EXIT_BAD_DATA, "%s: more than %d members", path, (int)MAX_MEMBERS);
    struct said *said = mem_alloc(2 * sizeof *said);
    int bad = 0;
    for (uint64_t i = 0; !bad && i < z.members; i++)
        bad = check_member(&z, &z.at, said, e);
    free(said);
    return bad;
}
