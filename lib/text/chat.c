/* chat.c - see chat.h: the three templates differ in the beginning-of-text token and in the system
 * block that LLaMA 3.1 always has. Its date is the constant of the published template, because a
 * prompt that changes overnight cannot be compared. */
#include "lib/text/chat.h"

#include <string.h>

#include "lib/text/utf8.h"

static const char *bos_of(enum chat kind)
{
    return kind == CHAT_LLADA ? "<|startoftext|>" : "<|begin_of_text|>";
}

/* First token of the template that the tokenizer lacks; NULL: it has all. */
static const char *lacking(enum chat kind, const struct tokenizer *t)
{
    const char *need[] = {bos_of(kind), "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (!tokenizer_is_special(t, tokenizer_id(t, need[i])))
            return need[i];
    return NULL;
}

int chat_choose(const char *name, enum chat own, const char *model, const struct tokenizer *t,
                enum chat *out, struct err *e)
{
    static const struct { const char *name; enum chat kind; } names[] = {
        {"none", CHAT_NONE}, {"llama3", CHAT_LLAMA3}, {"llama3.1", CHAT_LLAMA31},
        {"llada", CHAT_LLADA}};
    if (!strcmp(name, "auto")) {
        *out = own != CHAT_NONE && lacking(own, t) ? CHAT_NONE : own;
        return 0;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i].name) != 0)
            continue;
        *out = names[i].kind;
        const char *none = *out == CHAT_NONE ? NULL : lacking(*out, t);
        return none ? err_set(e, EXIT_BAD_DATA,
                              "%s: chat template %s: expected special token %s in tokenizer.json,"
                              " got none (a base model? try --chat none)", model, name, none)
                    : 0;
    }
    return err_set(e, EXIT_BAD_USAGE,
                   "--chat: expected auto, none, llama3, llama3.1 or llada, got \"%s\"", name);
}

/* Writes a template down. */
struct pen {
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

static void put_special(struct pen *p, const char *token)
{
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

static void put_header(struct pen *p, const char *role)
{
    put_special(p, "<|start_header_id|>");
    put_trimmed(p, role);
    put_special(p, "<|end_header_id|>");
    buf_text(&p->text, "\n\n");
}

static void put_message(struct pen *p, const struct chat_message *m)
{
    put_header(p, m->role);
    put_trimmed(p, m->content);
    put_special(p, "<|eot_id|>");
}

static void put_all(struct pen *p, enum chat kind, const struct chat_message *m, size_t n)
{
    size_t i = 0;
    put_special(p, bos_of(kind));
    if (kind == CHAT_LLAMA31) {
        put_header(p, "system");
        buf_text(&p->text, "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
        if (n > 0 && !strcmp(m[0].role, "system"))
            put_trimmed(p, m[i++].content);
        put_special(p, "<|eot_id|>");
    }
    for (; i < n; i++)
        put_message(p, &m[i]);
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
    struct pen p = {.t = t, .ids = out, .flags = parse_special ? 0 : ENCODE_PLAIN, .e = e};
    if (kind == CHAT_NONE)
        put_bare(&p, m, n);
    else
        put_all(&p, kind, m, n);
    flush(&p);
    buf_free(&p.text);
    return p.bad ? -1 : 0;
}
