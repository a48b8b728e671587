/* promptset.c - see promptset.h. Records of a prompt hold the time to make its ids, so this file
 * measures that time. */
#include "lib/run/prompts/promptset.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

struct taking { struct promptset *set; const struct prompt_encoder *const *encoder; };

static int take_one(struct prompts *prompts, const struct prompt_encoder *encoder, json_t *record,
                    const char *where, struct err *why)
{
    struct prompt prompt;
    const int64_t begin = clock_ns();
    if (prompt_make(&prompt, record, where, encoder, why))
        return -1;
    prompt.tokenize_ns = clock_ns() - begin;
    MEM_GROW(prompts->v, prompts->n, prompts->cap);
    prompts->v[prompts->n++] = prompt;
    return 0;
}

static int take(void *ctx, json_t *record, const char *where, struct err *why)
{
    const struct taking *to = ctx;
    int bad = 0;
    for (size_t i = 0; i < CHAT_WORDS; i++) {
        struct prompts *prompts = &to->set->by_chat[i];
        struct err refused = {0};
        if (!to->encoder[i] ||
            !take_one(prompts, to->encoder[i], json_incref(record), where, &refused)) {
            to->set->n = prompts->n > to->set->n ? prompts->n : to->set->n;
            continue;
        }
        if (!bad)
            *why = refused;
        bad = 1;
    }
    static const char *const used_up[] = {"text",   "messages", "prompt_ids",
                                          "schema", "kind",     "run"};
    for (size_t i = 0; i < sizeof used_up / sizeof *used_up; i++)
        json_object_del(record, used_up[i]); /* a prompt has its own text and ids */
    json_decref(record);
    return bad ? -1 : 0;
}

int promptset_read(struct promptset *promptset, const char *const *files, size_t n_files,
                   int64_t limit, const struct prompt_encoder *const encoder[CHAT_WORDS],
                   struct err *e)
{
    struct taking to = {promptset, encoder};
    *promptset = (struct promptset){0};
    int bad = prompt_input_read(&promptset->in, files, n_files, limit, take, &to, e);
    if (bad)
        promptset_free(promptset);
    return bad;
}

const struct prompts *promptset_at(const struct promptset *promptset, const struct settings *point)
{
    return &promptset->by_chat[settings_count(point, "chat_template")];
}

void promptset_free(struct promptset *promptset)
{
    for (size_t i = 0; i < CHAT_WORDS; i++) {
        struct prompts *prompts = &promptset->by_chat[i];
        for (size_t k = 0; k < prompts->n; k++)
            prompt_free(&prompts->v[k]);
        free(prompts->v);
    }
    prompt_input_free(&promptset->in);
    *promptset = (struct promptset){0};
}
