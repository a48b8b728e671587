/* test-column.c - a column gives back what was put in, bit by bit, and takes what the numbers ask
 * for. */
#include "lib/base/column.h"

#include <math.h>
#include <string.h>

#include "tests/tap.h"

enum { N = 4 * COLUMN_BLOCK + 17 };

static double values[N];

static int same_bits(double a, double b)
{
    return isnan(a) ? isnan(b) : !memcmp(&a, &b, sizeof a);
}

/* All of values[] out of a column as they went in. */
static int comes_back(void)
{
    struct column c = {0};
    int good = 1;
    for (size_t i = 0; i < N; i++) {
        column_add(&c, values[i]);
        good &= same_bits(column_at(&c, i), values[i]);
    }
    for (size_t i = 0; i < N; i++)
        good &= same_bits(column_at(&c, i), values[i]);
    good &= c.n == N;
    column_free(&c);
    return good && !c.n;
}

static void fill(double first, double step)
{
    for (size_t i = 0; i < N; i++)
        values[i] = first + step * (double)i;
}

int main(void)
{
    static const double steps[] = {0, 1, 7, 300, 70000, 20e6, 5e9, 1e12};
    int good = 1;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (int sign = -1; sign < 2; sign += 2) {
            fill(sign < 0 ? -3 : 12345678901, sign * steps[i]);
            good &= comes_back();
            values[0] = values[COLUMN_BLOCK + 3] = values[N - 1] = NAN;
            good &= comes_back();
        }
    ok(good, "whole numbers of any distance, with and without holes");
    fill(NAN, 0);
    ok(comes_back(), "nothing but holes");
    fill(0.1, 1.7);
    values[5] = NAN;
    ok(comes_back(), "fractions");
    static const double odd[] = {-0.0,    0,          INFINITY,   -INFINITY, 1e300, -1e300,
                                 5e-324,  0x1p53,     -0x1p53,    0x1p53 - 1, 0x1p51, -0x1p51,
                                 0x1p51 - 1, 1 - 0x1p51, 255,     256,       65535, 65536};
    good = 1;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        fill(0, 1);
        values[3] = odd[i];
        good &= comes_back();
        fill(odd[i], 0);
        good &= comes_back();
    }
    for (double far = 0x1p53 - 1; far > 0x1p49; far /= 2) {
        fill(-far, 0); /* as far apart as whole numbers are */
        values[1] = far;
        values[2] = floor(far);
        good &= comes_back();
    }
    ok(good, "signed zeroes, infinities, limits of whole numbers");
    return tap_done();
}
