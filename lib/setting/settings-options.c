/* settings-options.c - see settings.h. Each row of the table is an option of a tool: its name, the
 * form of its value, and its help with the default and with the setting that it is for. */
#include "lib/setting/settings.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"

static char *help_of(const struct settings_table *t, const struct setting *r)
{
    size_t follows = settings_followed(t, (size_t)(r - t->row));
    char other[SETTINGS_WORD];
    if (follows < t->n)
        settings_option(&t->row[follows], other);
    const char *standard = follows < t->n ? other : r->standard;
    if (r->only)
        return mem_format("%s (%s); for --%s", r->help, standard, r->only);
    return mem_format("%s (%s)", r->help, standard);
}

void settings_texts_free(struct settings_texts *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->v[i]);
    free(t->v);
    *t = (struct settings_texts){0};
}

char *settings_texts_keep(struct settings_texts *t, char *text)
{
    MEM_GROW(t->v, t->n, t->cap);
    return t->v[t->n++] = text;
}

static const char *value_name(const struct setting *r)
{
    int swept = !!(r->traits & SETTING_SWEPT);
    if (r->type == SETTING_CHOICE)
        return r->choices;
    if (r->type == SETTING_FLAG)
        return "on|off";
    if (r->type == SETTING_INT)
        return swept ? "N,..." : "N";
    return swept ? "X,..." : "X";
}

size_t settings_options(const struct settings_table *t, const char **given, struct opt *options,
                        struct settings_texts *texts)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct setting *r = &t->row[i];
        char *name = settings_texts_keep(texts, mem_alloc(SETTINGS_WORD));
        settings_option(r, name);
        options[i] = (struct opt){.name = name, .letter = r->letter,
                                  .type = r->type == SETTING_FLAG ? OPT_SWITCH : OPT_TEXT,
                                  .to = &given[i], .arg = value_name(r), .rare = r->rare,
                                  .help = settings_texts_keep(texts, help_of(t, r))};
    }
    return t->n;
}

static struct opt alias_option(const struct settings_table *t, const struct settings_alias *a,
                               const char **given, struct settings_texts *texts)
{
    const size_t row = settings_find(t, a->row);
    char own[SETTINGS_WORD];
    settings_option(&t->row[row], own);
    if (a->word)
        return (struct opt){.name = a->option, .type = OPT_WORD, .to = &given[row],
                            .choices = a->word, .rare = a->rare,
                            .help = settings_texts_keep(texts, mem_format("alias of --%s %s", own,
                                                                          a->word))};
    return (struct opt){.name = a->option, .type = OPT_TEXT, .to = &given[row],
                        .arg = value_name(&t->row[row]), .rare = a->rare,
                        .help = settings_texts_keep(texts, mem_format("alias of --%s", own))};
}

size_t settings_alias_options(const struct settings_table *t, const char **given,
                              struct opt *options, struct settings_texts *texts)
{
    size_t n = 0;
    for (const struct settings_alias *a = t->alias; a && a->option; a++, n++) {
        assert(n < SETTINGS_ALIASES);
        options[n] = alias_option(t, a, given, texts);
    }
    return n;
}
