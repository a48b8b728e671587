/* chat.c - the table of chat templates: special tokens, the text between them, and whether roles
 * and contents are trimmed.
 *
 * A prompt is built piece by piece: special tokens as ids, and the text between two of them encoded
 * in one call, as by a tokenizer that cuts special tokens out first. The date in the system block
 * of LLaMA 3.1 is the constant of the published template, because prompts of different days could
 * not be compared otherwise.
 *
 * A published template equals a row when everything that it can write (jinja.h) is in the row, in
 * any order, and nothing of the row is missing.
 */
#include "lib/text/chat.h"

#include <stdio.h>
#include <string.h>

#include "lib/text/jinja.h"
#include "lib/text/utf8.h"

struct template {
    const char *name;               /* of --chat */
    const char *bos;                /* token at the beginning, or NULL */
    const char *header, *role_end;  /* tokens around a role; role_end NULL: text alone follows it */
    const char *gap;                /* text between role and content */
    const char *end, *after;        /* token after a content, and text after that */
    int trims;
    const char *system;             /* beginning of the fixed system block, or NULL */
    const char *otherwise;          /* the system text when the caller gives none, or NULL */
    const char *words[2];           /* both, as published templates spell them */
};
#define HEADERS "<|start_header_id|>", "<|end_header_id|>", "\n\n", "<|eot_id|>", ""
#define IM "<|im_start|>", NULL, "\n", "<|im_end|>", "\n"
#define OTHERWISE(text) .otherwise = text, .words = {text}
#define KNOWLEDGE "Cutting Knowledge Date: December 2023\nToday Date: "
static const struct template templates[CHAT_COUNT] = {
    [CHAT_NONE] = {.name = "none"},
    [CHAT_LLAMA3] = {"llama3", "<|begin_of_text|>", HEADERS, 1},
    [CHAT_LLAMA31] = {"llama3.1", "<|begin_of_text|>", HEADERS, 1,
                      .system = KNOWLEDGE "26 Jul 2024\n\n",
                      .words = {KNOWLEDGE "\n\n", "26 Jul 2024"}},
    [CHAT_LLADA] = {"llada", "<|startoftext|>", HEADERS, 1},
    [CHAT_CHATML] = {"chatml", NULL, IM, 0},
    [CHAT_CHATML_BOS] = {"chatml-bos", "<|begin_of_text|>", IM, 0},
    [CHAT_QWEN2] = {"qwen2", NULL, IM, 0, OTHERWISE("You are a helpful assistant.")},
    [CHAT_QWEN25] = {"qwen2.5", NULL, IM, 0,
                     OTHERWISE("You are Qwen, created by Alibaba Cloud. "
                               "You are a helpful assistant.")},
    [CHAT_SMOLLM2] = {"smollm2", NULL, IM, 0,
                      OTHERWISE("You are a helpful AI assistant named SmolLM, trained by "
                                "Hugging Face")},
};

const char *chat_name(enum chat kind)
{
    return templates[kind].name;
}

const char *chat_end(enum chat kind)
{
    return templates[kind].end;
}

/* First token of the template that the tokenizer lacks; NULL: it has all. */
static const char *find_lacking(enum chat kind, const struct tokenizer *t)
{
    const struct template *w = &templates[kind];
    const char *need[] = {w->bos, w->header, w->role_end, w->end};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (need[i] && !tokenizer_is_special(t, tokenizer_id(t, need[i])))
            return need[i];
    return NULL;
}

/* Sets EXIT_BAD_USAGE; the message lists all names. */
static int refuse_name(const char *name, struct err *e)
{
    char list[160] = "auto";
    for (int k = 0; k < CHAT_COUNT; k++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", k + 1 < CHAT_COUNT ? ", " : " or ",
                 templates[k].name);
    }
    return err_set(e, EXIT_BAD_USAGE, "--chat: expected %s, got \"%s\"", list, name);
}

/* ---- matching a published template with a row ---- */

/* Parts of a row that a template was seen to write. */
enum { MET_BOS = 1, MET_TURN = 2, MET_ANSWER = 4, MET_END = 8, MET_WORDS = 16 /* and 32 */ };
struct match {
    size_t len;  /* length of the text that matches the row; the rest differs */
    int in_turn; /* 1: after a header, where a value is a content */
    unsigned met;
};

static size_t begins(const char *s, const char *with)
{
    size_t n = with ? strlen(with) : 0;
    return n && !strncmp(s, with, n) ? n : 0;
}

/* Length of a header at s, 0: none. */
static size_t header_at(const struct template *w, const char *s, unsigned *met)
{
    static const char *const roles[] = {"assistant", "user", "system"};
    size_t n = begins(s, w->header), role = s[n] == JINJA_VALUE, gap;
    unsigned what = role ? MET_TURN : 0;
    for (unsigned k = 0; n && !role && k < sizeof roles / sizeof *roles; k++) {
        role = begins(s + n, roles[k]);
        what = role && k == 0 ? MET_ANSWER : role && k == 1 ? MET_TURN : 0;
    }
    size_t end = role && w->role_end ? begins(s + n + role, w->role_end) : 0;
    if (!n || !role || (w->role_end && !end) || !(gap = begins(s + n + role + end, w->gap)))
        return 0;
    *met |= what;
    return n + role + end + gap;
}

/* Length of the piece of the row at s, which is noted in *m; 0: none. */
static size_t piece_at(const struct template *w, const char *s, struct match *m)
{
    size_t n = header_at(w, s, &m->met);
    if (n) {
        m->in_turn = 1;
        return n;
    }
    for (unsigned k = 0; k < 2; k++)
        if ((n = begins(s, w->words[k]))) {
            m->met |= (unsigned)MET_WORDS << k;
            return n;
        }
    if ((n = begins(s, w->bos))) {
        m->met |= MET_BOS;
        return n;
    }
    n = begins(s, w->end);
    if (n && (!*w->after || begins(s + n, w->after))) {
        m->met |= MET_END;
        m->in_turn = 0;
        return n + strlen(w->after);
    }
    return m->in_turn && *s == JINJA_VALUE;
}

static struct match match(const struct template *w, const char *text)
{
    struct match m = {0};
    for (size_t n; (n = piece_at(w, text + m.len, &m));)
        m.len += n;
    return m;
}

/* A word for the part of the row that the template lacks; NULL: none. */
static const char *find_missing(const struct template *w, const struct match *m, int trims)
{
    if (!(m->met & MET_TURN))
        return w->header;
    if (!(m->met & MET_END))
        return w->end;
    if (w->bos && !(m->met & MET_BOS))
        return w->bos;
    if (!(m->met & MET_ANSWER))
        return "the header of an answer";
    for (unsigned k = 0; k < 2; k++)
        if (w->words[k] && !(m->met & MET_WORDS << k))
            return w->words[k];
    return trims == w->trims ? NULL : w->trims ? "trim" : "contents that are not trimmed";
}

/* "it WHAT" and the text at s, up to the next value or token. */
static void tell(const char *what, const char *s, struct err *why)
{
    enum { MOST = 60 };
    const char *value = s;
    while (*s == JINJA_VALUE)
        s++;
    if (s > value && (!*s || !strncmp(s, "<|", 2))) {
        err_set(why, EXIT_BAD_DATA, "it %s a text outside of a turn", what);
        return;
    }
    int n = *s != 0;
    while (n && n < MOST && s[n] && s[n] != JINJA_VALUE && strncmp(s + n, "<|", 2) != 0)
        n++;
    while (n > 1 && ((unsigned char)s[n] & 0xc0) == 0x80) /* not inside a character */
        n--;
    err_set(why, EXIT_BAD_DATA, "it %s \"%.*s\"", what, n, s);
}

/* The row that a template equals. CHAT_NONE: none; *why has the difference from the row with the
 * longest match, which is *nearest if the template has its tokens. */
static enum chat recognize(const struct chat_source *own, enum chat *nearest, struct err *why)
{
    struct jinja_written w;
    struct match best = {0};
    enum chat found = CHAT_NONE, far = CHAT_NONE;
    int bad = jinja_read(&w, own->text, own->n, own->bos, own->eos, why);
    const char *text = w.text.data ? w.text.data : "";
    for (int k = CHAT_NONE + 1; !bad && !found && k < CHAT_COUNT; k++) {
        struct match m = match(&templates[k], text);
        if (!text[m.len] && !find_missing(&templates[k], &m, w.trims))
            found = (enum chat)k;
        if (far == CHAT_NONE || m.len > best.len)
            best = m, far = (enum chat)k;
        if (far == (enum chat)k || (*nearest == CHAT_NONE && m.len == best.len))
            *nearest = strstr(text, templates[k].header) ? (enum chat)k : CHAT_NONE;
    }
    if (!bad && !found && text[best.len])
        tell("writes", text + best.len, why);
    else if (!bad && !found)
        tell("lacks", find_missing(&templates[far], &best, w.trims), why);
    jinja_free(&w);
    return found;
}

/* ---- choosing a row ---- */

/* --chat auto, with the message about it. */
static void choose_own(const struct chat_source *own, enum chat family, const char *model,
                       const struct tokenizer *t, struct chat_choice *to)
{
    struct err why = {0};
    enum chat nearest = CHAT_NONE;
    if (!own->text && !*own->fault) {
        if (family && !find_lacking(family, t))
            err_set(&to->said, EXIT_OK, "%s: no chat template: the checkpoint has none (a "
                     "base model?); --chat %s applies one", model, chat_name(family));
        return;
    }
    if (*own->fault)
        err_set(&why, EXIT_BAD_DATA, "%s", own->fault);
    enum chat kind = *own->fault ? CHAT_NONE : recognize(own, &nearest, &why);
    const char *none = kind ? find_lacking(kind, t) : NULL;
    to->unknown = !kind;
    if (!kind)
        err_set(&to->said, EXIT_OK, "%s: a chat template that is not known here: %s; "
                 "prompts go without one: pass --chat none, or --chat %s if that is near enough",
                 own->where, why.text, !nearest ? "NAME" : chat_name(nearest));
    else if (none)
        err_set(&to->said, EXIT_OK, "%s: no chat template: %s is there, but tokenizer.json "
                 "has no special token %s (a base model?)", own->where, chat_name(kind), none);
    else
        err_set(&to->said, EXIT_OK, "%s: chat template %s", own->where, chat_name(kind));
    to->kind = none ? CHAT_NONE : kind;
}

int chat_choose(const char *name, const struct chat_source *own, enum chat family,
                const char *model, const struct tokenizer *t, struct chat_choice *out,
                struct err *e)
{
    *out = (struct chat_choice){0};
    if (!strcmp(name, "auto")) {
        choose_own(own, family, model, t, out);
        return 0;
    }
    for (int k = 0; k < CHAT_COUNT; k++) {
        if (strcmp(name, templates[k].name) != 0)
            continue;
        out->kind = (enum chat)k;
        if (k != CHAT_NONE)
            err_set(&out->said, EXIT_OK, "%s: chat template %s (--chat)", model, name);
        const char *none = find_lacking(out->kind, t);
        return none ? err_set(e, EXIT_BAD_DATA,
                              "%s: chat template %s: expected special token %s in tokenizer.json,"
                              " got none (a base model? try --chat none)", model, name, none)
                    : 0;
    }
    return refuse_name(name, e);
}

/* Builds the ids of a prompt. */
struct pen {
    const struct template *w;
    struct buf text; /* text after the last special token */
    const struct tokenizer *t;
    struct ids *ids;
    int flags, bad;
    struct err *e;
};

/* Encodes the text since the last special token. */
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

/* Jinja's trim: removes white space, also Unicode's, at both ends. Invalid UTF-8 is kept; encoding
 * refuses it with its offset. */
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

/* A role or a content, trimmed if the template does. */
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
    } else if (p->w->otherwise && !(n > 0 && !strcmp(m[0].role, "system"))) {
        put_header(p, "system");
        buf_text(&p->text, p->w->otherwise);
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
