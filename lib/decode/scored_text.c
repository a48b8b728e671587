/* scored_text.c - see scored_text.h. Prompt and text are encoded separately and joined, so that the
 * likelihood of a text never depends on how its first letters would merge with the last ones of the
 * prompt. */
#include "lib/decode/scored_text.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

int scored_text_pair(const struct tokenizer *t, const char *prompt, const char *text,
                     struct ids *ids, size_t *first, struct err *e)
{
    if (tokenizer_encode(t, prompt, strlen(prompt), ENCODE_SPECIAL | ENCODE_PLAIN, ids, e))
        return -1;
    *first = ids->n ? ids->n : 1;
    return tokenizer_encode(t, text, strlen(text), ENCODE_PLAIN, ids, e);
}

int scored_text_choice(const struct tokenizer *t, const char *question, const char *choice,
                       struct ids *ids, size_t *first, struct err *e)
{
    size_t n = strlen(question), at;
    while (n && strchr(" \n\t\r", question[n - 1]))
        n--;
    char *whole = mem_format("%s%s%s", question, question[n] ? "" : " ", choice);
    int bad = tokenizer_encode(t, whole, n, ENCODE_SPECIAL | ENCODE_PLAIN, ids, e);
    at = ids->n ? ids->n : 1;
    ids->n = 0;
    bad = bad || tokenizer_encode(t, whole, strlen(whole), ENCODE_SPECIAL | ENCODE_PLAIN, ids, e);
    *first = at;
    free(whole);
    return bad ? -1 : 0;
}

static int read_ids(struct scored_text *g, const json_t *list, size_t vocab, struct err *e)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || (size_t)id >= vocab)
            return err_set(e, EXIT_BAD_DATA, "prompt_ids[%zu]: expected an integer from 0 to %zu",
                           i, vocab - 1);
        ids_push(&g->ids, (int32_t)id);
    }
    return 0;
}

int scored_text_read(struct scored_text *g, const json_t *record, const struct config *c,
               const struct tokenizer *t, int all, int reference, struct err *e)
{
    const json_t *list = json_object_get(record, "prompt_ids");
    const char *text = rec_text(record, "text"), *answer = rec_text(record, "reference");
    *g = (struct scored_text){.first = all ? 0 : 1};
    if (json_is_array(list) && !reference)
        return read_ids(g, list, c->vocab, e);
    if (!text || (reference && !answer))
        return err_set(e, EXIT_BAD_DATA, "expected 'prompt_ids' or %s",
                       reference ? "'text' and 'reference'" : "'text'");
    if (!t)
        return err_set(e, EXIT_BAD_DATA, "text cannot be encoded: %s has no tokenizer.json",
                       c->name);
    g->bytes = strlen(reference ? answer : text);
    if (reference)
        return scored_text_pair(t, text, answer, &g->ids, &g->first, e);
    return tokenizer_encode(t, text, g->bytes, ENCODE_SPECIAL | ENCODE_PLAIN, &g->ids, e);
}
