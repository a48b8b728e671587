/* scored_text.c - see scored_text.h. scored_text_pair() encodes prompt and text separately and
 * joins the ids, so that the likelihood of a text never depends on how its first letters would
 * merge with the last letters of the prompt. */
#include "lib/decode/scored_text.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

int scored_text_pair(const struct tokenizer *tokenizer, const char *prompt, const char *text,
                     struct ids *ids, size_t *first, struct err *e)
{
    if (tokenizer_encode(tokenizer, prompt, strlen(prompt), ENCODE_SPECIAL | ENCODE_PLAIN, ids, e))
        return -1;
    *first = ids->n ? ids->n : 1;
    return tokenizer_encode(tokenizer, text, strlen(text), ENCODE_PLAIN, ids, e);
}

int scored_text_choice(const struct tokenizer *tokenizer, const char *question, const char *choice,
                       struct ids *ids, size_t *first, struct err *e)
{
    size_t n = strlen(question), at;
    while (n && strchr(" \n\t\r", question[n - 1]))
        n--;
    char *whole = mem_format("%s%s%s", question, question[n] ? "" : " ", choice);
    int bad = tokenizer_encode(tokenizer, whole, n, ENCODE_SPECIAL | ENCODE_PLAIN, ids, e);
    at = ids->n ? ids->n : 1;
    ids->n = 0;
    bad = bad ||
          tokenizer_encode(tokenizer, whole, strlen(whole), ENCODE_SPECIAL | ENCODE_PLAIN, ids, e);
    *first = at;
    free(whole);
    return bad ? -1 : 0;
}

static int read_ids(struct scored_text *text, const json_t *list, size_t vocab, struct err *e)
{
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || (size_t)id >= vocab)
            return err_set(e, EXIT_BAD_DATA, "prompt_ids[%zu]: expected an integer from 0 to %zu",
                           i, vocab - 1);
        ids_push(&text->ids, (int32_t)id);
    }
    return 0;
}

int scored_text_read(struct scored_text *scored_text, const json_t *record,
                     const struct config *config, const struct tokenizer *tokenizer, int all,
                     int reference, struct err *e)
{
    const json_t *list = json_object_get(record, "prompt_ids");
    const char *text = rec_text(record, "text"), *answer = rec_text(record, "reference");
    *scored_text = (struct scored_text){.first = all ? 0 : 1};
    if (json_is_array(list) && !reference)
        return read_ids(scored_text, list, config->vocab, e);
    if (!text || (reference && !answer))
        return err_set(e, EXIT_BAD_DATA, "expected 'prompt_ids' or %s",
                       reference ? "'text' and 'reference'" : "'text'");
    if (!tokenizer)
        return err_set(e, EXIT_BAD_DATA, "text cannot be encoded: %s has no tokenizer.json",
                       config->name);
    scored_text->bytes = strlen(reference ? answer : text);
    if (reference)
        return scored_text_pair(tokenizer, text, answer, &scored_text->ids, &scored_text->first, e);
    return tokenizer_encode(tokenizer, text, scored_text->bytes, ENCODE_SPECIAL | ENCODE_PLAIN,
                            &scored_text->ids, e);
}
