/* prompt_input.c - see prompt_input.h. Only the first REC_BAD_KEPT faults are kept, so that an
 * input of the wrong kind does not fill memory. */
#include "lib/record/prompt_input.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/places.h"
#include "lib/record/json.h"

struct prompt_reading {
    struct prompt_input *in;
    prompt_taker take;
    void *ctx;
    struct places seen; /* ids */
    struct hash *hash;
    struct buf line;
    size_t taken;
};

/* Adds a fault, or counts it; the id is stolen. */
static void add_fault(struct prompt_input *in, const char *where, json_t *id,
                      const struct err *err)
{
    if (in->faults == REC_BAD_KEPT) {
        in->more++;
        json_decref(id);
        return;
    }
    MEM_GROW(in->fault, in->faults, in->fault_cap);
    in->fault[in->faults++] = (struct prompt_fault){mem_text(where), id, *err};
}

static int check_id(struct places *seen, const json_t *record, const char *where, struct err *e)
{
    const char *id;
    if (json_text(record, where, "id", &id, e))
        return -1;
    size_t n = strlen(id), met = seen->n;
    if (!n)
        return err_set(e, EXIT_BAD_DATA, "id: expected a text of one character or more, got \"\"");
    if (n > REC_ID_BYTES)
        return err_set(e, EXIT_BAD_DATA, "id: expected at most %d bytes, got %zu", REC_ID_BYTES, n);
    if (places_of(seen, id, n) < met)
        return err_set(e, EXIT_BAD_DATA, "id '%.200s' occurs twice: expected each id once", id);
    return 0;
}

static void hash_record(struct prompt_reading *reading, const json_t *record)
{
    buf_clear(&reading->line);
    if (json_put(record, JSON_COMPACT | JSON_SORT_KEYS, &reading->line))
        buf_clear(&reading->line);
    buf_char(&reading->line, '\n');
    hash_add(reading->hash, reading->line.data, reading->line.len);
}

/* Gives a record to the taker, or makes a fault of it; the record is stolen. */
static void add_record(struct prompt_reading *reading, json_t *record, const char *where)
{
    struct err e = {0};
    const char *id = rec_text(record, "id");
    json_t *given = json_incref(json_object_get(record, "id"));
    char name[64] = "without an id";
    int bad = check_id(&reading->seen, record, where, &e);
    if (id)
        snprintf(name, sizeof name, "'%.50s'", id);
    if (bad)
        json_decref(record);
    else
        bad = reading->take(reading->ctx, record, where, &e);
    reading->taken += !bad;
    if (!bad) {
        json_decref(given);
        return;
    }
    err_prefix(&e, "prompt %s", name);
    add_fault(reading->in, where, given, &e);
}

static int read_all(struct prompt_reading *reading, struct rec_reader *from, int64_t limit,
                    struct err *e)
{
    json_t *record = NULL;
    int got = 1;
    for (int64_t count = 0; got && !(limit && count == limit);) {
        struct err line = {0};
        got = rec_read(from, &record, &line);
        if (got < 0 && line.code != EXIT_BAD_DATA) {
            *e = line;
            return -1;
        }
        const char *kind = got > 0 ? rec_kind(record) : "";
        if (got < 0) {
            add_fault(reading->in, rec_where(from), NULL, &line);
            count++;
        } else if (got && *kind && strcmp(kind, "prompt")) {
            json_decref(record);
        } else if (got) {
            hash_record(reading, record);
            add_record(reading, record, rec_where(from));
            count++;
        }
    }
    return 0;
}

int prompt_input_read(struct prompt_input *in, const char *const *files, size_t n_files,
                      int64_t limit, prompt_taker take, void *ctx, struct err *e)
{
    *in = (struct prompt_input){0};
    struct rec_reader *from = rec_read_open(files, n_files, e);
    if (!from)
        return -1;
    struct prompt_reading reading = {.in = in, .take = take, .ctx = ctx, .hash = hash_new()};
    int bad = read_all(&reading, from, limit, e);
    hash_hex(reading.hash, in->sha256);
    hash_free(reading.hash);
    places_free(&reading.seen);
    buf_free(&reading.line);
    in->unsound = rec_read_unsound(from);
    in->inputs = rec_read_inputs(from);
    rec_read_close(from);
    if (!bad && !reading.taken && !in->faults)
        bad = err_set(e, EXIT_BAD_DATA,
                      "%s: no prompt records: expected lines {\"id\":\"p1\",\"text\":\"...\"}",
                      n_files ? files[0] : "standard input");
    if (bad)
        prompt_input_free(in);
    return bad;
}

void prompt_input_free(struct prompt_input *in)
{
    for (size_t i = 0; i < in->faults; i++) {
        free(in->fault[i].where);
        json_decref(in->fault[i].id);
    }
    free(in->fault);
    json_decref(in->inputs);
    *in = (struct prompt_input){0};
}
