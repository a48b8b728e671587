/* vocabulary.c - the tokenizer of a model in training; see vocabulary.h. An id of config.json has
 * priority over a token with the usual name, because the weights were trained with this id. A new
 * token gets the id behind all others. If the embedding has rows without tokens, new tokens get
 * these rows, as in published conversions of Qwen3. */
#include "lib/train/vocabulary.h"

#include <string.h>

#include "lib/base/mem.h"

static const char bos_token[] = "<|startoftext|>", eos_token[] = "<|endoftext|>",
                  mask_token[] = "<|mdm_mask|>";

/* Loads the tokenizer from `folder` and sets the fields that follow from it. -1: the tokenizer
 * cannot be read. */
static int finish(struct vocabulary *vocabulary, struct config *config, const char *folder,
                  struct err *e)
{
    vocabulary->tokenizer = tokenizer_load(folder, e);
    if (!vocabulary->tokenizer)
        return -1;
    const size_t n = tokenizer_size(vocabulary->tokenizer);
    config->vocab = config->vocab > n ? config->vocab : n;
    const struct ids *before = tokenizer_before(vocabulary->tokenizer);
    vocabulary->before = before->n ? before->v[0] : -1;
    return 0;
}

int vocabulary_learn(struct vocabulary *vocabulary, struct config *config, const char *folder,
                     const char *const *texts, size_t n, size_t vocab, int writes, struct err *e)
{
    const char *const special[] = {bos_token, eos_token, mask_token};
    const int denoises = config_denoises(config);
    *vocabulary = (struct vocabulary){.before = -1};
    if (writes && tokenizer_learn(folder, texts, n, vocab, special, 3,
                                  denoises ? NULL : bos_token, e))
        return -1;
    config->vocab = 0;
    if (finish(vocabulary, config, folder, e))
        return -1;
    config->bos = tokenizer_id(vocabulary->tokenizer, bos_token);
    config->eos[0] = config->pad = tokenizer_id(vocabulary->tokenizer, eos_token);
    config->n_eos = 1;
    config->mask = denoises ? tokenizer_id(vocabulary->tokenizer, mask_token) : -1;
    return 0;
}

/* 1: the id is bos, eos or pad of the model. */
static int in_use(const struct config *config, int64_t id)
{
    int use = id == config->bos || id == config->pad;
    for (size_t i = 0; i < config->n_eos; i++)
        use |= id == config->eos[i];
    return use;
}

/* The id of the first added token whose name says that it is unused; -1: none. */
static int64_t unused_token(const json_t *tokenizer, const struct config *config)
{
    static const char *const marks[] = {"reserved", "unused", "[control_", "<SPECIAL_"};
    json_t *token;
    size_t i;
    json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, token) {
        const char *text = json_string_value(json_object_get(token, "content"));
        const int64_t id = json_integer_value(json_object_get(token, "id"));
        for (size_t k = 0; text && k < sizeof marks / sizeof *marks; k++)
            if (strstr(text, marks[k]) && !in_use(config, id))
                return id;
    }
    return -1;
}

/* The name of the mask token: <|mdm_mask|> if the family has no name for it or if the tokenizer has
 * only <|mdm_mask|>; else the name of the family. */
static const char *mask_of(const struct family *family, const struct tokenizer *tokenizer)
{
    const int own = !family->mask_token || (tokenizer_id(tokenizer, family->mask_token) < 0 &&
                                            tokenizer_id(tokenizer, mask_token) >= 0);
    return own ? mask_token : family->mask_token;
}

/* The id of a token. If the tokenizer lacks the token, adds it to how->add. */
static int64_t id_of(struct tokenizer_changes *how, const struct tokenizer *tokenizer,
                     const char *token)
{
    const int64_t id = tokenizer_id(tokenizer, token);
    if (id >= 0)
        return id;
    how->add[how->n_add] = token;
    return (int64_t)(tokenizer_size(tokenizer) + how->n_add++);
}

/* Sets the ids of *config, and in *how the tokens that must be added to the tokenizer. */
static void choose(struct vocabulary *vocabulary, struct config *config, const struct config *from,
                   const struct tokenizer *tokenizer, const json_t *j,
                   struct tokenizer_changes *how)
{
    const size_t n = tokenizer_size(tokenizer);
    config->vocab = from->vocab;
    config->bos = from->bos >= 0 ? from->bos : tokenizer_id(tokenizer, bos_token);
    config->n_eos = from->n_eos;
    memcpy(config->eos, from->eos, sizeof config->eos);
    if (!config->n_eos)
        config->eos[config->n_eos++] = id_of(how, tokenizer, eos_token);
    config->pad = from->pad >= 0 ? from->pad : config->eos[0];
    config->mask = config_denoises(config) ? from->mask : -1;
    if (config_denoises(config) && config->mask < 0) {
        const char *name = mask_of(config->family, tokenizer);
        const int64_t unused = how->n_add || tokenizer_id(tokenizer, name) >= 0
                                   ? -1
                                   : unused_token(j, config);
        config->mask = unused >= 0 ? unused : id_of(how, tokenizer, name);
        if (unused >= 0)
            vocabulary->added = (struct new_rows){(size_t)unused, (size_t)unused + 1};
    }
    if (how->n_add)
        vocabulary->added = (struct new_rows){n, n + how->n_add};
}

/* -1: the tokenizer puts several tokens before a text; in training a text begins with at most
 * one. */
static int check_before(const struct tokenizer *tokenizer, const struct checkpoint *from,
                        const struct tokenizer_changes *how, struct err *e)
{
    const size_t n = tokenizer_before(tokenizer)->n;
    return n > 1 && !how->replaces
               ? err_set(e, EXIT_BAD_DATA, "%s: its tokenizer puts %zu tokens before a text: "
                         "expected at most one", from->config.name, n)
               : 0;
}

int vocabulary_take(struct vocabulary *vocabulary, struct config *config, const char *folder,
                    const struct checkpoint *from, int same, int writes, struct err *e)
{
    struct tokenizer_changes how = {0};
    *vocabulary = (struct vocabulary){.before = -1};
    json_t *j = checkpoint_tokenizer_json(from, e);
    struct tokenizer *tokenizer = j ? tokenizer_load_json(j, from->folder, e) : NULL;
    if (tokenizer) {
        choose(vocabulary, config, &from->config, tokenizer, j, &how);
        how.replaces = !same && tokenizer_id(tokenizer, bos_token) >= 0;
        how.bos = config_denoises(config) ? NULL : bos_token;
    }
    int bad = !tokenizer || check_before(tokenizer, from, &how, e) ||
              (writes && tokenizer_adopt(folder, j, &how, e)) ||
              finish(vocabulary, config, folder, e);
    tokenizer_free(tokenizer);
    json_decref(j);
    return bad ? -1 : 0;
}

void vocabulary_free(struct vocabulary *vocabulary)
{
    tokenizer_free(vocabulary->tokenizer);
    vocabulary->tokenizer = NULL;
}
