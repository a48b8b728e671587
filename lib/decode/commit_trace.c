/* commit_trace.c - see commit_trace.h. All blocks are stored one after the other in one array, so
 * one long block among many short ones costs no extra memory. Invariant: the passes of every stored
 * block are above 0 and sum to block_length. */
#include "lib/decode/commit_trace.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/filehash.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/setting/settings.h"

enum { BLOCK_MOST = 1 << 20 };

static void end_of_block(struct commit_trace *t)
{
    MEM_GROW(t->block, t->blocks + 1, t->cap_blocks);
    t->block[++t->blocks] = t->n;
    size_t steps = t->n - t->block[t->blocks - 1];
    t->steps = steps > t->steps ? steps : t->steps;
}

/* Appends the blocks of a record. */
static int take_list(struct commit_trace *t, const json_t *list, const char *where, struct err *e)
{
    size_t i, sum = 0, begin = t->n, blocks = t->blocks;
    int is_whole = 1;
    const json_t *v;
    json_array_foreach(list, i, v) {
        json_int_t tokens = json_integer_value(v);
        if (!json_is_integer(v) || tokens < 0 || (size_t)tokens > t->block_length - sum)
            return err_set(e, EXIT_BAD_DATA, "%s: commit_tokens[%zu]: expected an integer from 0 "
                           "to %zu, the rest of the block", where, i, t->block_length - sum);
        MEM_GROW(t->tokens, t->n, t->cap_tokens);
        t->tokens[t->n++] = (int32_t)tokens;
        sum += (size_t)tokens;
        is_whole &= tokens > 0;
        if (sum < t->block_length)
            continue;
        if (is_whole)
            end_of_block(t);
        t->n = t->block[t->blocks];
        sum = 0;
        is_whole = 1;
    }
    t->n = t->block[t->blocks];
    if (t->blocks > blocks && t->n > begin) {
        MEM_GROW(t->curve, t->curves + 1, t->cap_curves);
        t->curve[++t->curves] = t->blocks;
    }
    return 0;
}

static int take(struct commit_trace *t, const json_t *r, char **point, const char *where,
                struct err *e)
{
    const json_t *list = json_object_get(r, "commit_tokens");
    const char *seen_point = rec_text(r, "point"), *status = rec_text(r, "status");
    int64_t length;
    if (strcmp(rec_kind(r), "generation") || !json_is_array(list) || !status ||
        strcmp(status, "ok"))
        return 0;
    if (json_is_true(json_object_get(r, "weights_random")) ||
        json_is_true(json_object_get(r, "replayed")))
        return err_set(e, EXIT_BAD_DATA, "%s: expected a record of a trained model, got one of "
                       "random weights or of a replay", where);
    if (json_integer_value(json_object_get(r, "draft_steps")) > 1)
        return err_set(e, EXIT_BAD_DATA, "%s: draft_steps: expected a record without drafted "
                       "steps, got draft_steps %d", where,
                       (int)json_integer_value(json_object_get(r, "draft_steps")));
    if (json_integer_value(json_object_get(r, "remasked_tokens")) > 0 ||
        json_has(r, "edit_threshold"))
        return err_set(e, EXIT_BAD_DATA, "%s: expected a rule whose tokens stay, got one that "
                       "masks tokens again or edits them: its passes cannot be replayed", where);
    if (json_int(r, where, "block_length", 1, BLOCK_MOST, &length, e))
        return -1;
    if (!*point) {
        *point = mem_text(seen_point ? seen_point : "");
        t->block_length = (size_t)length;
    } else if (strcmp(*point, seen_point ? seen_point : "") || t->block_length != (size_t)length) {
        return err_set(e, EXIT_BAD_DATA, "%s: expected records of one point (%.12s), got another "
                       "(%.12s)", where, *point, seen_point ? seen_point : "none");
    }
    return take_list(t, list, where, e);
}

int commit_trace_read(struct commit_trace *t, const char *path, struct err *e)
{
    *t = (struct commit_trace){0};
    MEM_GROW(t->block, t->blocks, t->cap_blocks);
    MEM_GROW(t->curve, t->curves, t->cap_curves);
    t->block[0] = t->curve[0] = 0;
    if (filehash(path, FILEHASH_LARGE, t->sha256, e) < 0)
        return -1;
    char *point = NULL;
    struct rec_reader *in = rec_read_open(&path, 1, e);
    json_t *r;
    int got = in ? 1 : -1;
    while (got > 0 && (got = rec_read(in, &r, e)) > 0) {
        got = take(t, r, &point, rec_where(in), e) ? -1 : 1;
        json_decref(r);
    }
    if (in)
        rec_read_close(in);
    free(point);
    if (!got && !t->curves)
        return err_set(e, EXIT_BAD_DATA, "%s: no commit curve: expected generation records of "
                       "gen-llada with commit_tokens that fill a block", path);
    return got;
}

void commit_trace_free(struct commit_trace *t)
{
    free(t->tokens);
    free(t->block);
    free(t->curve);
    *t = (struct commit_trace){0};
}

int commit_trace_check(const struct commit_trace *t, const struct settings *point, struct err *e)
{
    int replays = settings_find(point->table, "unmask") < point->table->n &&
                  settings_is(point, "unmask", "replay");
    if (!t && !replays)
        return 0;
    if (!t || !replays)
        return err_set(e, EXIT_BAD_USAGE, "--commit-trace FILE and --unmask replay: expected both "
                       "or neither");
    if (settings_count(point, "block_length") != t->block_length)
        return err_set(e, EXIT_BAD_USAGE, "--block-length %zu: expected %zu, as in the commit "
                       "trace", settings_count(point, "block_length"), t->block_length);
    return 0;
}

void commit_trace_budget(const struct commit_trace *t, uint64_t key, size_t blocks,
                         int32_t *budget)
{
    size_t curve = (size_t)(key % t->curves), first = t->curve[curve];
    size_t has = t->curve[curve + 1] - first;
    for (size_t b = 0; b < blocks; b++) {
        size_t from = t->block[first + b % has], n = t->block[first + b % has + 1] - from;
        for (size_t k = 0; k < t->steps; k++)
            budget[b * t->steps + k] = k < n ? t->tokens[from + k] : 0;
    }
}
