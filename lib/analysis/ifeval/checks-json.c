/* checks-json.c - checks whether Python's json.loads would read a text as JSON. It accepts NaN and
 * Infinity, a name that comes twice, and half a surrogate pair. It refuses an integer of more than
 * 4,300 digits. */
#include <ctype.h>
#include <string.h>

#include "lib/analysis/ifeval/checks.h"

enum { DEEPEST = 900, MOST_DIGITS = 4300 }; /* DEEPEST: Python gives up at a depth near 1,000 */

struct reader { const char *at; int depth; }; /* at: the rest of a text that ends in NUL */

static int value(struct reader *reader);

static void skip(struct reader *reader)
{
    reader->at += strspn(reader->at, " \t\n\r");
}

static int take(struct reader *reader, const char *word)
{
    size_t n = strlen(word);
    int same = !strncmp(reader->at, word, n);
    reader->at += same ? n : 0;
    return same;
}

static int string(struct reader *reader)
{
    if (!take(reader, "\""))
        return 0;
    for (;;) {
        unsigned char byte = (unsigned char)*reader->at;
        if (byte < 0x20)
            return 0;
        reader->at++;
        if (byte == '"')
            return 1;
        if (byte != '\\')
            continue;
        byte = (unsigned char)*reader->at;
        if (!byte || !strchr("\"\\/bfnrtu", byte))
            return 0;
        reader->at++;
        for (int i = 0; byte == 'u' && i < 4; i++, reader->at++)
            if (!isxdigit((unsigned char)*reader->at))
                return 0;
    }
}

static size_t digits(struct reader *reader)
{
    size_t n = strspn(reader->at, "0123456789");
    reader->at += n;
    return n;
}

static int number(struct reader *reader)
{
    take(reader, "-");
    size_t whole = *reader->at == '0' ? (size_t)take(reader, "0") : digits(reader);
    int real = 0;
    if (!whole)
        return 0;
    if (*reader->at == '.' && isdigit((unsigned char)reader->at[1])) {
        reader->at++;
        real = digits(reader) > 0;
    }
    if (*reader->at == 'e' || *reader->at == 'E') {
        const char *power = reader->at + 1;
        power += *power == '-' || *power == '+';
        if (isdigit((unsigned char)*power)) {
            reader->at = power;
            real = digits(reader) > 0;
        }
    }
    return real || whole <= MOST_DIGITS;
}

/* Reads the members of a list, or of an object (named 1), after the opening bracket. */
static int members(struct reader *reader, const char *close, int named)
{
    int fits = reader->depth++ < DEEPEST;
    skip(reader);
    if (fits && take(reader, close)) {
        reader->depth--;
        return 1;
    }
    for (int more = 1; more && fits;) {
        skip(reader);
        if (named) {
            fits = string(reader);
            skip(reader);
            fits = fits && take(reader, ":");
            skip(reader);
        }
        fits = fits && value(reader);
        skip(reader);
        more = fits && take(reader, ",");
    }
    reader->depth--;
    return fits && take(reader, close);
}

static int value(struct reader *reader)
{
    static const char *const words[] = {"null", "true", "false", "NaN", "Infinity", "-Infinity"};
    if (*reader->at == '"')
        return string(reader);
    if (take(reader, "{"))
        return members(reader, "}", 1);
    if (take(reader, "["))
        return members(reader, "]", 0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (take(reader, words[i]))
            return 1;
    return number(reader);
}

static int begins(struct piece text, const char *word)
{
    return text.n >= strlen(word) && !memcmp(text.at, word, strlen(word));
}

int checks_json(const struct asked *asked)
{
    static const char *const fences[] = {"```json", "```Json", "```JSON", "```"};
    struct piece text = python_strip(asked->text);
    struct buf own = {0};
    for (size_t i = 0; i < sizeof fences / sizeof *fences; i++)
        if (begins(text, fences[i])) {
            text.at += strlen(fences[i]);
            text.n -= strlen(fences[i]);
        }
    if (text.n >= 3 && !memcmp(text.at + text.n - 3, "```", 3))
        text.n -= 3;
    text = python_strip(text);
    buf_put(&own, text.at, text.n);
    struct reader reader = {own.data ? own.data : "", 0};
    skip(&reader);
    int fits = value(&reader);
    skip(&reader);
    fits = fits && !*reader.at;
    buf_free(&own);
    return fits;
}
