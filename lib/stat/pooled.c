/* pooled.c - qualities of a set of prompts; see pooled.h.
 *
 * A perplexity is exp(sum of nats / sum of tokens) over all prompts, not a mean of perplexities. So
 * both sums are kept until the end. Every draw uses the same prompts for all points, because points
 * are compared on the same texts. */
#include "lib/stat/pooled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stat/bootstrap.h"

static const struct pooled_kind kinds[] = {
    {"judge_ppl", "judge_nll_nats", POOLED_BY_TOKEN, POOLED_EXPONENTIAL},
    {"judge_bits_per_byte", "judge_nll_nats", POOLED_BY_BYTE, POOLED_BITS},
    {"ppl", "nll_nats", POOLED_BY_TOKEN, POOLED_EXPONENTIAL},
    {"bits_per_byte", "nll_nats", POOLED_BY_BYTE, POOLED_BITS},
    {"elbo_ppl", "elbo_nats", POOLED_BY_TOKEN, POOLED_EXPONENTIAL},
    {"elbo_bits_per_byte", "elbo_nats", POOLED_BY_BYTE, POOLED_BITS},
    {"iwae_ppl", "iwae_nats", POOLED_BY_TOKEN, POOLED_EXPONENTIAL},
    {"iwae_bits_per_byte", "iwae_nats", POOLED_BY_BYTE, POOLED_BITS},
    {"kstep_ppl", "kstep_nats", POOLED_BY_TOKEN, POOLED_EXPONENTIAL},
    {"kstep_bits_per_byte", "kstep_nats", POOLED_BY_BYTE, POOLED_BITS},
    {"accuracy", "accuracy", POOLED_BY_PROMPT, POOLED_PLAIN},
};

struct pooled_kind pooled_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, name))
            return kinds[i];
    return (struct pooled_kind){name, name, POOLED_BY_PROMPT, POOLED_PLAIN};
}

struct pooled_kind pooled_of(const char *source)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].source, source))
            return kinds[i];
    return pooled_find(source);
}

size_t pooled_common(double *num, double *den, const unsigned char *there,
                     const unsigned char *has, size_t points, size_t prompts, size_t *left_out)
{
    size_t kept = 0;
    *left_out = 0;
    for (size_t k = 0; k < prompts; k++) {
        int all = 1, any = 0;
        for (size_t i = 0; i < points; i++) {
            any |= there[i * prompts + k];
            all &= !has[i] || there[i * prompts + k];
        }
        *left_out += any && !all;
        if (!any || !all)
            continue;
        for (size_t i = 0; i < points; i++) { /* kept <= k: a value moves left in its row */
            num[i * prompts + kept] = num[i * prompts + k];
            den[i * prompts + kept] = den[i * prompts + k];
        }
        kept++;
    }
    for (size_t i = 1; i < points; i++) {
        memmove(num + i * kept, num + i * prompts, kept * sizeof *num);
        memmove(den + i * kept, den + i * prompts, kept * sizeof *den);
    }
    return kept;
}

double pooled_value(double value, double weight, enum pooled_transform transform)
{
    double mean = weight > 0 ? value / weight : (double)NAN;
    return transform == POOLED_EXPONENTIAL ? exp(mean)
           : transform == POOLED_BITS      ? mean / log(2)
                                           : mean;
}

double pooled_scale(double value, enum pooled_transform transform, int higher)
{
    double s = transform == POOLED_EXPONENTIAL ? log(value) : value;
    return higher ? s : -s;
}

/* Fills rows[n][width]: for each prompt, num of all points, then den of all points. If every weight
 * is 1, den is left out. Returns width. */
static size_t lay_rows(const double *num, const double *den, const unsigned char *has,
                       size_t points, size_t n, double *rows)
{
    int ones = 1;
    for (size_t i = 0; i < points; i++)
        for (size_t k = 0; has[i] && k < n; k++)
            ones &= den[i * n + k] >= 1 && den[i * n + k] <= 1;
    size_t width = ones ? points : 2 * points;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < width; i++)
            rows[k * width + i] = i < points ? num[i * n + k] : den[(i - points) * n + k];
    return width;
}

void pooled_draws(const double *num, const double *den, const unsigned char *has, size_t points,
                  size_t n, enum pooled_transform transform, uint64_t seed, size_t draws,
                  double *value, double *draw, uint32_t *index, double *work)
{
    double *sum = work, *rows = work + 2 * points;
    size_t width = lay_rows(num, den, has, points, n, rows);
    for (size_t round = 0; round <= draws; round++) { /* round = draws: as measured */
        if (round < draws)
            bootstrap_draw(seed, round, n, index);
        bootstrap_sums(rows, width, round < draws ? index : NULL, n, sum);
        for (size_t i = 0; i < points; i++) {
            double weight = width > points ? sum[points + i] : (double)n;
            double number = has[i] ? pooled_value(sum[i], weight, transform) : (double)NAN;
            *(round < draws ? &draw[round * points + i] : &value[i]) = number;
        }
    }
}

int pooled_margin_parse(const char *text, const char *name, struct pooled_margin *margin)
{
    *margin = (struct pooled_margin){0};
    for (const char *part = text; part && *part;) {
        size_t n = strcspn(part, ","), key = strcspn(part, "=,");
        int named = part[key] == '=',
            mine = !named || (strlen(name) == key && !strncmp(part, name, key));
        const char *number = part + (named ? key + 1 : 0);
        char *end;
        double found = strtod(number, &end);
        int relative = *end == '%';
        if (!(found >= 0) || isinf(found) || end == number || end + relative != part + n)
            return -1;
        if (mine)
            *margin = (struct pooled_margin){relative ? found / 100 : found, relative};
        part += n + (part[n] == ',');
    }
    return 0;
}

double pooled_worsened(double value, const struct pooled_margin *margin, int higher)
{
    double by = margin->relative ? margin->by * fabs(value) : margin->by;
    return higher ? value - by : value + by;
}
