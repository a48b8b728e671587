/* promptset.c - see promptset.h. A bad prompt does not stop the run: it is kept as a fault, which
 * the runner writes as an error record. The hash covers every prompt record in canonical form, also
 * bad ones: it identifies the input, not the part that could be answered. */
#include "lib/run/prompts/promptset.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/places.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

/* The id is stolen. */
static void add_fault(struct promptset *s, const char *where, json_t *id, const struct err *err)
{
    if (s->faults == REC_BAD_KEPT) {
        s->more++;
        json_decref(id);
        return;
    }
    MEM_GROW(s->fault, s->faults, s->fault_cap);
    s->fault[s->faults++] = (struct prompt_fault){mem_text(where), id, *err};
}

static int check_id(struct places *seen, const char *id, struct err *e)
{
    size_t n = strlen(id), met = seen->n;
    if (n > REC_ID_BYTES)
        return err_set(e, EXIT_BAD_DATA, "id: expected at most %d bytes, got %zu", REC_ID_BYTES, n);
    if (places_of(seen, id, n) < met)
        return err_set(e, EXIT_BAD_DATA, "id '%.200s' occurs twice: expected each id once", id);
    return 0;
}

static void hash_record(struct hash *h, const json_t *record, struct buf *line)
{
    buf_clear(line);
    if (json_put(record, JSON_COMPACT | JSON_SORT_KEYS, line))
        buf_clear(line);
    buf_char(line, '\n');
    hash_add(h, line->data, line->len);
}

/* The record is stolen. */
static void add_record(struct promptset *s, json_t *record, const char *where,
                       const struct prompt_encoder *encoder, struct places *seen)
{
    struct err e = {0};
    struct prompt p;
    const char *id = rec_text(record, "id");
    json_t *given = json_incref(json_object_get(record, "id"));
    int64_t begin = clock_ns();
    char name[64] = "without an id";
    if (id)
        snprintf(name, sizeof name, "'%.50s'", id);
    if (id && check_id(seen, id, &e)) {
        json_decref(record);
    } else if (!prompt_make(&p, record, where, encoder, &e)) {
        p.tokenize_ns = clock_ns() - begin;
        MEM_GROW(s->v, s->n, s->cap);
        s->v[s->n++] = p;
        json_decref(given);
        return;
    }
    err_prefix(&e, "prompt %s", name);
    add_fault(s, where, given, &e);
}

static int read_all(struct promptset *s, struct rec_reader *r, int64_t limit,
                    const struct prompt_encoder *encoder, struct hash *h, struct err *e)
{
    struct places seen = {0};
    struct buf canonical = {0};
    json_t *record = NULL;
    int got = 1;
    for (int64_t count = 0; got && !(limit && count == limit);) {
        struct err line = {0};
        got = rec_read(r, &record, &line);
        if (got < 0 && line.code != EXIT_BAD_DATA) {
            *e = line;
            break;
        }
        const char *kind = got > 0 ? rec_kind(record) : "";
        if (got < 0) {
            add_fault(s, rec_where(r), NULL, &line);
            count++;
        } else if (got && *kind && strcmp(kind, "prompt")) {
            json_decref(record);
        } else if (got) {
            hash_record(h, record, &canonical);
            add_record(s, record, rec_where(r), encoder, &seen);
            count++;
        }
    }
    places_free(&seen);
    buf_free(&canonical);
    s->unsound = rec_read_unsound(r);
    return e->code ? -1 : 0;
}

int promptset_read(struct promptset *s, const char *const *files, size_t n_files, int64_t limit,
                   const struct prompt_encoder *encoder, struct err *e)
{
    *s = (struct promptset){0};
    struct rec_reader *r = rec_read_open(files, n_files, e);
    if (!r)
        return -1;
    struct hash *h = hash_new();
    int bad = read_all(s, r, limit, encoder, h, e);
    hash_hex(h, s->sha256);
    hash_free(h);
    s->inputs = rec_read_inputs(r);
    rec_read_close(r);
    if (!bad && !s->n && !s->faults)
        bad = err_set(e, EXIT_BAD_DATA,
                      "%s: no prompt records: expected lines {\"id\":\"p1\",\"text\":\"...\"}",
                      n_files ? files[0] : "standard input");
    if (bad)
        promptset_free(s);
    return bad;
}

void promptset_free(struct promptset *s)
{
    for (size_t i = 0; i < s->n; i++)
        prompt_free(&s->v[i]);
    for (size_t i = 0; i < s->faults; i++) {
        free(s->fault[i].where);
        json_decref(s->fault[i].id);
    }
    free(s->v);
    free(s->fault);
    json_decref(s->inputs);
    *s = (struct promptset){0};
}
