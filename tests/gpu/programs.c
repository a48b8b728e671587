/* programs.c - links the tests of a device to one program. The name under which the program is
 * called selects a test. The makefile lists the tests as TESTS, TEST(test_head) TEST(test_mat) ..,
 * and the main() of each is called main_test_head. */
#include <stdio.h>
#include <string.h>

#define TEST(name) int main_##name(int argc, char **argv);
TESTS
#undef TEST

static const struct {
    const char *name; /* name of the test, with _ for - */
    int (*run)(int argc, char **argv);
} tests[] = {
#define TEST(name) {#name, main_##name},
    TESTS
#undef TEST
};

static int same_name(const char *a, const char *b)
{
    while (*a && (*a == *b || (*a == '-' && *b == '_')))
        a++, b++;
    return *a == *b;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (same_name(name, tests[i].name))
            return tests[i].run(argc, argv);
    fprintf(stderr, "%s: expected the name of a test of tests/cuda or tests/gpu\n", name);
    return 64;
}
