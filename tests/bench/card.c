/* card.c - reads the nominal rate of a card from the driver's library. The functions of that
 * library have kept their names, arguments and attribute numbers since CUDA 4.1. Their prototypes
 * are written here, so no header of the toolkit is needed. */
#include "tests/bench/card.h"

#include <dlfcn.h>
#include <string.h>

enum { CLOCK_RATE = 13 /* kHz, the highest */, MULTIPROCESSOR_COUNT = 16 };

/* Dense bf16 products with fp32 sums: operations of one multiprocessor per cycle. A workstation
 * card of the same capability may have twice as much; the table has the lower number. Source:
 * NVIDIA's white papers on the A100 (312 Tflop/s / 108 / 1.41 GHz), GA102 (RTX 3090: 71 / 82 /
 * 1.695), AD102 (RTX 4090: 165.2 / 128 / 2.52), the H100 (989.4 / 132 / 1.83), and Blackwell (B200:
 * 2250 / 148 / 1.85; RTX 5090: 209.5 / 170 / 2.407). */
static const struct {
    const char *level;
    double flops_per_cycle;
} units[] = {{"sm_80", 2048}, {"sm_86", 512}, {"sm_89", 512}, {"sm_90", 4096}, {"sm_100", 8192},
             {"sm_120", 512}};

typedef int start_call(unsigned flags);
typedef int find_call(int *device, const char *address);
typedef int ask_call(int *value, int attribute, int device);

/* Sets *to to the function `name`. (POSIX allows an object pointer for a function; ISO C does
 * not.) */
static int find(void *library, const char *name, void *to)
{
    void *f = dlsym(library, name);
    memcpy(to, &f, sizeof f);
    return f ? 0 : -1;
}

static int ask(void *library, const char *address, struct card *c)
{
    start_call *start;
    find_call *by_address;
    ask_call *attribute;
    int device, khz;
    if (find(library, "cuInit", &start) || find(library, "cuDeviceGetByPCIBusId", &by_address) ||
        find(library, "cuDeviceGetAttribute", &attribute) || start(0) ||
        by_address(&device, address) ||
        attribute(&c->multiprocessors, MULTIPROCESSOR_COUNT, device) ||
        attribute(&khz, CLOCK_RATE, device) || c->multiprocessors <= 0 || khz <= 0)
        return -1;
    c->clock_hz = 1e3 * khz;
    return 0;
}

int card_read(const struct backend *b, struct card *c, const char **why)
{
    *c = (struct card){0};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(b->level, units[i].level))
            c->flops_per_cycle = units[i].flops_per_cycle;
    *why = "no figure for this compute capability";
    if (!(c->flops_per_cycle > 0))
        return -1;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int bad = !library || ask(library, b->address, c);
    if (library)
        dlclose(library);
    *why = "the driver does not tell clock and multiprocessors";
    return bad ? -1 : 0;
}

double card_flops_per_s(const struct card *c)
{
    return c->multiprocessors * c->clock_hz * c->flops_per_cycle;
}
