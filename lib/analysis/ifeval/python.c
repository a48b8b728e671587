/* python.c - see python.h. utf8proc has the category and the simple lower case of a character.
 * Python also uses Unicode's Other_Uppercase and Other_Lowercase. Two rules of lower() are special:
 * a dotted capital I becomes two characters, and a capital sigma at the end of a word becomes a
 * final sigma. */
#include "lib/analysis/ifeval/python.h"

#include <string.h>
#include <utf8proc.h>

#include "lib/text/utf8.h"

struct range { uint32_t from, to; };

enum { DOTTED_I = 0x130, DOT_ABOVE = 0x307 };
enum { SIGMA = 0x3A3, FINAL_SIGMA = 0x3C2, SMALL_SIGMA = 0x3C3 };

/* Other_Uppercase: capitals that are not of category Lu: numerals, letters in circles. */
static const struct range other_upper[] = {
    {0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

static const struct range other_lower[] = {
    {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},
    {0x2E0, 0x2E4},     {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},
    {0x1D78, 0x1D78},   {0x1D9B, 0x1DBF},   {0x2071, 0x2071},   {0x207F, 0x207F},
    {0x2090, 0x209C},   {0x2170, 0x217F},   {0x24D0, 0x24E9},   {0x2C7C, 0x2C7D},
    {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},   {0xAB5C, 0xAB5F},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}};

/* Punctuation inside words (Word_Break MidLetter, MidNumLet, Single_Quote). */
static const struct range inside_words[] = {
    {0x27, 0x27},     {0x2E, 0x2E},     {0x3A, 0x3A},     {0xB7, 0xB7},
    {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
    {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52},
    {0xFE55, 0xFE55}, {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};

#define IS_IN(ranges, code) is_in(ranges, sizeof(ranges) / sizeof *(ranges), code)

static int is_in(const struct range *ranges, size_t n, uint32_t code)
{
    for (size_t i = 0; i < n; i++)
        if (code >= ranges[i].from && code <= ranges[i].to)
            return 1;
    return 0;
}

static utf8proc_category_t category(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t)utf8_stand_in(code));
}

struct piece python_piece(const char *text)
{
    return (struct piece){text, strlen(text)};
}

/* Python counts the four separators of ASCII as white space; Unicode's White_Space does not. */
int python_is_space(uint32_t code)
{
    return (code >= 0x1C && code <= 0x1F) || utf8_is_space(code);
}

int python_is_word(uint32_t code)
{
    if (code < 0x80)
        return code == '_' || (code >= '0' && code <= '9') ||
               ((code | 0x20) >= 'a' && (code | 0x20) <= 'z');
    utf8proc_category_t kind = category(code);
    return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO) ||
           (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO);
}

int python_is_digit(uint32_t code)
{
    return category(code) == UTF8PROC_CATEGORY_ND;
}

static int is_upper(uint32_t code)
{
    return category(code) == UTF8PROC_CATEGORY_LU || IS_IN(other_upper, code);
}

static int is_lower(uint32_t code)
{
    return category(code) == UTF8PROC_CATEGORY_LL || IS_IN(other_lower, code);
}

int python_is_upper(struct piece text)
{
    int any = 0;
    for (size_t i = 0, len; i < text.n; i += len) {
        uint32_t code = utf8_read(text.at + i, &len);
        if (is_lower(code) || category(code) == UTF8PROC_CATEGORY_LT)
            return 0;
        any = any || is_upper(code);
    }
    return any;
}

struct piece python_strip(struct piece text)
{
    size_t len;
    while (text.n && python_is_space(utf8_read(text.at, &len))) {
        text.at += len;
        text.n -= len;
    }
    while (text.n) {
        size_t last = utf8_before(text.at, text.n);
        if (!python_is_space(utf8_read(text.at + last, &len)))
            break;
        text.n = last;
    }
    return text;
}

struct piece python_strip_of(struct piece text, char left, char right)
{
    while (left && text.n && *text.at == left)
        text.at++, text.n--;
    while (right && text.n && text.at[text.n - 1] == right)
        text.n--;
    return text;
}

int python_is_blank(struct piece text)
{
    return !python_strip(text).n;
}

struct piece python_next_word(struct piece *at)
{
    size_t len, n = 0;
    while (at->n && python_is_space(utf8_read(at->at, &len))) {
        at->at += len;
        at->n -= len;
    }
    while (n < at->n && !python_is_space(utf8_read(at->at + n, &len)))
        n += len;
    struct piece word = {at->at, n};
    at->at += n;
    at->n -= n;
    return word;
}

/* ---- lower case ---- */

/* Unicode's Case_Ignorable: characters that the rule for a final sigma skips. */
static int is_ignored(uint32_t code)
{
    utf8proc_category_t kind = category(code);
    return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME ||
           kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_LM ||
           kind == UTF8PROC_CATEGORY_SK || IS_IN(inside_words, code);
}

static int has_case(uint32_t code)
{
    return is_upper(code) || is_lower(code) || category(code) == UTF8PROC_CATEGORY_LT;
}

/* 1: the sigma at text.at[at] ends a word. */
static int ends_word(struct piece text, size_t at)
{
    size_t len, before = at;
    uint32_t code = ' ';
    do
        code = before ? utf8_read(text.at + (before = utf8_before(text.at, before)), &len) : ' ';
    while (before && is_ignored(code));
    if (is_ignored(code) || !has_case(code))
        return 0;
    utf8_read(text.at + at, &len);
    for (at += len; at < text.n && is_ignored(code = utf8_read(text.at + at, &len)); at += len)
        ;
    return at == text.n || !has_case(code);
}

void python_lower(struct piece text, struct buf *out)
{
    for (size_t i = 0, len; i < text.n; i += len) {
        uint32_t code = utf8_read(text.at + i, &len);
        if (code == DOTTED_I) {
            utf8_put(out, 'i');
            utf8_put(out, DOT_ABOVE);
        } else if (code == SIGMA) {
            utf8_put(out, ends_word(text, i) ? FINAL_SIGMA : SMALL_SIGMA);
        } else {
            utf8_put(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
        }
    }
}
