/* alphabet.c - maps bytes to printable characters and back; see alphabet.h.
 *
 * The 188 bytes that are printable in Latin-1 map to themselves; the other 68 bytes map to U+0100,
 * U+0101, ... in the order of their values. */
#include "lib/text/tokenizer/alphabet.h"

#include "lib/text/utf8.h"

static uint32_t code_of(unsigned b)
{
    if (b <= 32)
        return 256 + b;
    if (b >= 127 && b <= 160)
        return 289 + (b - 127);
    return b == 173 ? 323 : b;
}

int alphabet_byte(uint32_t code)
{
    if ((code >= 33 && code <= 126) || (code >= 161 && code <= 255 && code != 173))
        return (int)code;
    if (code >= 256 && code <= 288)
        return (int)code - 256;
    if (code >= 289 && code <= 322)
        return (int)code - 289 + 127;
    return code == 323 ? 173 : -1;
}

int alphabet_bytes(const char *piece, size_t n, struct buf *out)
{
    size_t len, before = out->len;
    buf_reserve(out, n);
    for (size_t i = 0; i < n; i += len) {
        int b = alphabet_byte(utf8_read(piece + i, &len));
        if (b < 0) {
            out->len = before;
            return -1;
        }
        buf_char(out, (char)b);
    }
    return 0;
}

void alphabet_piece(const char *bytes, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++)
        utf8_put(out, code_of((unsigned char)bytes[i]));
}
