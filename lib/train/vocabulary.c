/* vocabulary.c - see vocabulary.h. An id of config.json counts before a token of the usual name,
 * because the weights were trained with it. New tokens stand behind all others; where the embedding
 * has rows without tokens, they take these, as published conversions of Qwen3 do. */
#include "lib/train/vocabulary.h"

#include <string.h>

#include "lib/base/mem.h"

static const char bos_token[] = "<|startoftext|>", eos_token[] = "<|endoftext|>",
                  mask_token[] = "<|mdm_mask|>";

/* Sets the fields that follow from the written tokenizer. -1: it cannot be read. */
static int finish(struct vocabulary *v, struct config *c, const char *folder, struct err *e)
{
    v->tokenizer = tokenizer_load(folder, e);
    if (!v->tokenizer)
        return -1;
    const size_t n = tokenizer_size(v->tokenizer);
    c->vocab = c->vocab > n ? c->vocab : n;
    const struct ids *before = tokenizer_before(v->tokenizer);
    v->before = before->n ? before->v[0] : -1;
    return 0;
}

int vocabulary_learn(struct vocabulary *v, struct config *c, const char *folder,
                     const char *const *texts, size_t n, size_t vocab, int writes, struct err *e)
{
    const char *const special[] = {bos_token, eos_token, mask_token};
    const int denoises = config_denoises(c);
    *v = (struct vocabulary){.before = -1};
    if (writes && tokenizer_learn(folder, texts, n, vocab, special, 3,
                                  denoises ? NULL : bos_token, e))
        return -1;
    c->vocab = 0;
    if (finish(v, c, folder, e))
        return -1;
    c->bos = tokenizer_id(v->tokenizer, bos_token);
    c->eos[0] = c->pad = tokenizer_id(v->tokenizer, eos_token);
    c->n_eos = 1;
    c->mask = denoises ? tokenizer_id(v->tokenizer, mask_token) : -1;
    return 0;
}

/* 1: the id begins, ends or fills the texts of the model. */
static int in_use(const struct config *c, int64_t id)
{
    int use = id == c->bos || id == c->pad;
    for (size_t i = 0; i < c->n_eos; i++)
        use |= id == c->eos[i];
    return use;
}

/* The first added token that its authors left unused, by its name; -1: none. */
static int64_t unused_token(const json_t *tokenizer, const struct config *c)
{
    static const char *const marks[] = {"reserved", "unused", "[control_", "<SPECIAL_"};
    json_t *token;
    size_t i;
    json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, token) {
        const char *text = json_string_value(json_object_get(token, "content"));
        const int64_t id = json_integer_value(json_object_get(token, "id"));
        for (size_t k = 0; text && k < sizeof marks / sizeof *marks; k++)
            if (strstr(text, marks[k]) && !in_use(c, id))
                return id;
    }
    return -1;
}

/* The name of a mask token: that of the family, or ours, if the tokenizer has only that. */
static const char *mask_of(const struct family *f, const struct tokenizer *t)
{
    const int own = !f->mask_token ||
                    (tokenizer_id(t, f->mask_token) < 0 && tokenizer_id(t, mask_token) >= 0);
    return own ? mask_token : f->mask_token;
}

/* The id of a token, which is added if it is not there. */
static int64_t id_of(struct tokenizer_changes *how, const struct tokenizer *t, const char *token)
{
    const int64_t id = tokenizer_id(t, token);
    if (id >= 0)
        return id;
    how->add[how->n_add] = token;
    return (int64_t)(tokenizer_size(t) + how->n_add++);
}

/* Sets the ids of c, and how the tokenizer changes for them. */
static void choose(struct vocabulary *v, struct config *c, const struct config *from,
                   const struct tokenizer *t, const json_t *j, struct tokenizer_changes *how)
{
    const size_t n = tokenizer_size(t);
    c->vocab = from->vocab;
    c->bos = from->bos >= 0 ? from->bos : tokenizer_id(t, bos_token);
    c->n_eos = from->n_eos;
    memcpy(c->eos, from->eos, sizeof c->eos);
    if (!c->n_eos)
        c->eos[c->n_eos++] = id_of(how, t, eos_token);
    c->pad = from->pad >= 0 ? from->pad : c->eos[0];
    c->mask = config_denoises(c) ? from->mask : -1;
    if (config_denoises(c) && c->mask < 0) {
        const char *name = mask_of(c->family, t);
        const int64_t unused = how->n_add || tokenizer_id(t, name) >= 0 ? -1 : unused_token(j, c);
        c->mask = unused >= 0 ? unused : id_of(how, t, name);
        if (unused >= 0)
            v->added = (struct new_rows){(size_t)unused, (size_t)unused + 1};
    }
    if (how->n_add)
        v->added = (struct new_rows){n, n + how->n_add};
}

/* A text in training begins with one token at most. */
static int check_before(const struct tokenizer *t, const struct checkpoint *from,
                        const struct tokenizer_changes *how, struct err *e)
{
    const size_t n = tokenizer_before(t)->n;
    return n > 1 && !how->replaces
               ? err_set(e, EXIT_BAD_DATA, "%s: its tokenizer puts %zu tokens before a text: "
                         "expected at most one", from->config.name, n)
               : 0;
}

int vocabulary_take(struct vocabulary *v, struct config *c, const char *folder,
                    const struct checkpoint *from, int same, int writes, struct err *e)
{
    struct tokenizer_changes how = {0};
    *v = (struct vocabulary){.before = -1};
    json_t *j = checkpoint_tokenizer_json(from, e);
    struct tokenizer *t = j ? tokenizer_load_json(j, from->folder, e) : NULL;
    if (t) {
        choose(v, c, &from->config, t, j, &how);
        how.replaces = !same && tokenizer_id(t, bos_token) >= 0;
        how.bos = config_denoises(c) ? NULL : bos_token;
    }
    int bad = !t || check_before(t, from, &how, e) ||
              (writes && tokenizer_adopt(folder, j, &how, e)) || finish(v, c, folder, e);
    tokenizer_free(t);
    json_decref(j);
    return bad ? -1 : 0;
}

void vocabulary_free(struct vocabulary *v)
{
    tokenizer_free(v->tokenizer);
    v->tokenizer = NULL;
}
