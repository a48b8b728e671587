/* chat.c - the templates as rows of one table: which special tokens stand where, what text is
 * between them, and whether white space goes off the ends of roles and contents.
 *
 * A prompt is written down piece by piece: special tokens as ids, and the text between two of them
 * encoded at once, as a tokenizer does that cuts special tokens out first. The date in the system
 * block of LLaMA 3.1 is the constant of the published template, because a prompt that changes
 * overnight cannot be compared.
 */
#include "lib/text/chat.h"

#include <stdio.h>
#include <string.h>

#include "lib/text/utf8.h"

struct template {
    const char *name;               /* of --chat */
    const char *bos;                /* token at the beginning, or NULL */
    const char *header, *role_end;  /* tokens around a role; role_end NULL: text alone follows it */
    const char *gap;                /* text between role and content */
    const char *end, *after;        /* token behind a content, and text behind that */
    const char *system;             /* how a system block begins that is always there, or NULL */
    int trims;
};
#define HEADERS "<|start_header_id|>", "<|end_header_id|>", "\n\n", "<|eot_id|>", ""
static const struct template templates[CHAT_COUNT] = {
    [CHAT_NONE] = {.name = "none"},
    [CHAT_LLAMA3] = {"llama3", "<|begin_of_text|>", HEADERS, NULL, 1},
    [CHAT_LLAMA31] = {"llama3.1", "<|begin_of_text|>", HEADERS,
                      "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n", 1},
    [CHAT_LLADA] = {"llada", "<|startoftext|>", HEADERS, NULL, 1},
    [CHAT_CHATML] = {"chatml", NULL, "<|im_start|>", NULL, "\n", "<|im_end|>", "\n", NULL, 0},
};

const char *chat_end(enum chat kind)
{
    return templates[kind].end;
}

/* First token of the template that the tokenizer lacks; NULL: it has all. */
static const char *lacking(enum chat kind, const struct tokenizer *t)
{
    const struct template *w = &templates[kind];
    const char *need[] = {w->bos, w->header, w->role_end, w->end};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (need[i] && !tokenizer_is_special(t, tokenizer_id(t, need[i])))
            return need[i];
    return NULL;
}

/* EXIT_BAD_USAGE, with all names. */
static int refuse_name(const char *name, struct err *e)
{
    char list[128] = "auto";
    for (int k = 0; k < CHAT_COUNT; k++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", k + 1 < CHAT_COUNT ? ", " : " or ",
                 templates[k].name);
    }
    return err_set(e, EXIT_BAD_USAGE, "--chat: expected %s, got \"%s\"", list, name);
}

int chat_choose(const char *name, enum chat own, const char *model, const struct tokenizer *t,
                enum chat *out, struct err *e)
{
    if (!strcmp(name, "auto")) {
        *out = lacking(own, t) ? CHAT_NONE : own;
        return 0;
    }
    for (int k = 0; k < CHAT_COUNT; k++) {
        if (strcmp(name, templates[k].name) != 0)
            continue;
        *out = (enum chat)k;
        const char *none = lacking(*out, t);
        return none ? err_set(e, EXIT_BAD_DATA,
                              "%s: chat template %s: expected special token %s in tokenizer.json,"
                              " got none (a base model? try --chat none)", model, name, none)
                    : 0;
    }
    return refuse_name(name, e);
}

/* Writes a template down. */
struct pen {
    const struct template *w;
    struct buf text; /* what follows the last special token */
    const struct tokenizer *t;
    struct ids *ids;
    int flags, bad;
    struct err *e;
};

/* The text since the last special token becomes ids. */
static void flush(struct pen *p)
{
    if (p->text.len && !p->bad)
        p->bad = tokenizer_encode(p->t, p->text.data, p->text.len, p->flags, p->ids, p->e);
    buf_clear(&p->text);
}

/* NULL: nothing. */
static void put_special(struct pen *p, const char *token)
{
    if (!token)
        return;
    flush(p);
    ids_push(p->ids, tokenizer_id(p->t, token));
}

/* Jinja's trim: white space off both ends, Unicode's included. Text that is not UTF-8 is kept;
 * encoding will refuse it with the place. */
static void put_trimmed(struct pen *p, const char *s)
{
    size_t n = strlen(s), begin = 0, end = 0, len;
    if (utf8_valid(s, n) < n) {
        buf_put(&p->text, s, n);
        return;
    }
    while (begin < n && utf8_is_space(utf8_read(s + begin, &len)))
        begin += len;
    for (size_t i = begin; i < n; i += len)
        if (!utf8_is_space(utf8_read(s + i, &len)))
            end = i + len;
    if (end > begin)
        buf_put(&p->text, s + begin, end - begin);
}

/* A role or a content, as the template wants it. */
static void put_words(struct pen *p, const char *s)
{
    if (p->w->trims)
        put_trimmed(p, s);
    else
        buf_text(&p->text, s);
}

static void put_header(struct pen *p, const char *role)
{
    put_special(p, p->w->header);
    put_words(p, role);
    put_special(p, p->w->role_end);
    buf_text(&p->text, p->w->gap);
}

static void put_end(struct pen *p)
{
    put_special(p, p->w->end);
    buf_text(&p->text, p->w->after);
}

static void put_all(struct pen *p, const struct chat_message *m, size_t n)
{
    size_t i = 0;
    put_special(p, p->w->bos);
    if (p->w->system) {
        put_header(p, "system");
        buf_text(&p->text, p->w->system);
        if (n > 0 && !strcmp(m[0].role, "system"))
            put_words(p, m[i++].content);
        put_end(p);
    }
    for (; i < n; i++) {
        put_header(p, m[i].role);
        put_words(p, m[i].content);
        put_end(p);
    }
    put_header(p, "assistant");
}

/* Without a template: the contents, a line feed between. */
static void put_bare(struct pen *p, const struct chat_message *m, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            buf_char(&p->text, '\n');
        buf_text(&p->text, m[i].content);
    }
}

int chat_encode(enum chat kind, const struct tokenizer *t, const struct chat_message *m, size_t n,
                int parse_special, struct ids *out, struct err *e)
{
    struct pen p = {.w = &templates[kind], .t = t, .ids = out,
                    .flags = parse_special ? 0 : ENCODE_PLAIN, .e = e};
    if (kind == CHAT_NONE)
        put_bare(&p, m, n);
    else
        put_all(&p, m, n);
    flush(&p);
    buf_free(&p.text);
    return p.bad ? -1 : 0;
}
