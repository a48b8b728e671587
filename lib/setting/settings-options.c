/* settings-options.c - see settings.h. Makes an option of a tool from each row of a table: its
 * name, the form of its value, and its help with the default and the condition `only`. */
#include "lib/setting/settings.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"

static char *help_of(const struct settings_table *table, const struct setting *setting)
{
    size_t follows = settings_followed(table, (size_t)(setting - table->row));
    char other[SETTINGS_WORD];
    if (follows < table->n)
        settings_option(&table->row[follows], other);
    const char *standard = follows < table->n ? other : setting->standard;
    if (setting->only)
        return mem_format("%s (%s); for --%s", setting->help, standard, setting->only);
    return mem_format("%s (%s)", setting->help, standard);
}

void settings_texts_free(struct settings_texts *texts)
{
    for (size_t i = 0; i < texts->n; i++)
        free(texts->v[i]);
    free(texts->v);
    *texts = (struct settings_texts){0};
}

char *settings_texts_keep(struct settings_texts *texts, char *text)
{
    MEM_GROW(texts->v, texts->n, texts->cap);
    return texts->v[texts->n++] = text;
}

static const char *value_name(const struct setting *setting)
{
    int swept = !!(setting->traits & SETTING_SWEPT);
    if (setting->type == SETTING_CHOICE)
        return setting->choices;
    if (setting->type == SETTING_FLAG)
        return "on|off";
    if (setting->type == SETTING_INT)
        return swept ? "N,..." : "N";
    return swept ? "X,..." : "X";
}

size_t settings_options(const struct settings_table *table, const char **given, struct opt *options,
                        struct settings_texts *texts)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct setting *setting = &table->row[i];
        char *name = settings_texts_keep(texts, mem_alloc(SETTINGS_WORD));
        settings_option(setting, name);
        options[i] = (struct opt){.name = name, .letter = setting->letter,
                                  .type = setting->type == SETTING_FLAG ? OPT_SWITCH : OPT_TEXT,
                                  .to = &given[i], .arg = value_name(setting),
                                  .rare = setting->rare,
                                  .help = settings_texts_keep(texts, help_of(table, setting))};
    }
    return table->n;
}

static struct opt alias_option(const struct settings_table *table,
                               const struct settings_alias *alias, const char **given,
                               struct settings_texts *texts)
{
    const size_t row = settings_find(table, alias->row);
    char own[SETTINGS_WORD];
    settings_option(&table->row[row], own);
    if (alias->word)
        return (struct opt){.name = alias->option, .type = OPT_WORD, .to = &given[row],
                            .choices = alias->word, .rare = alias->rare,
                            .help = settings_texts_keep(texts, mem_format("alias of --%s %s", own,
                                                                          alias->word))};
    return (struct opt){.name = alias->option, .type = OPT_TEXT, .to = &given[row],
                        .arg = value_name(&table->row[row]), .rare = alias->rare,
                        .help = settings_texts_keep(texts, mem_format("alias of --%s", own))};
}

size_t settings_alias_options(const struct settings_table *table, const char **given,
                              struct opt *options, struct settings_texts *texts)
{
    size_t n = 0;
    for (const struct settings_alias *alias = table->alias; alias && alias->option; alias++, n++) {
        assert(n < SETTINGS_ALIASES);
        options[n] = alias_option(table, alias, given, texts);
    }
    return n;
}
