/* test-jinja.c - compares templates with the texts that Jinja 3.1 made of them with the settings of
 * transformers. Also tests refusals and their words, and which bytes come from messages. */
#include "lib/text/jinja.h"

#include "lib/base/mem.h"
#include "tests/tap.h"

static json_t *variables(void)
{
    return json_pack("{s:[{s:s,s:s},{s:s,s:s},{s:s,s:s}],s:s,s:s,s:n,s:n,s:b}", "messages", "role",
                     "system", "content", " Be brief.\n", "role", "user", "content",
                     "It's \"q\" \u00e9", "role", "assistant", "content", "<a>b</a>c", "bos_token",
                     "<s>", "eos_token", "</s>", "tools", "documents", "add_generation_prompt", 1);
}

/* Returns the text that the template writes, or the error message. The caller frees. */
static char *result(const char *text, size_t n, int *failed)
{
    struct err e = {0};
    struct jinja_written w = {{0}, {0}};
    json_t *all = variables();
    struct jinja *t = jinja_parse(text, n, &e);
    *failed = !t || jinja_render(t, all, &w, &e);
    char *it = *failed ? mem_text(e.text) : mem_format("%.*s", (int)w.text.len,
                                                       w.text.data ? w.text.data : "");
    jinja_written_free(&w);
    jinja_free(t);
    json_decref(all);
    return it;
}

struct example { const char *text, *want; };

static void check_all(const struct example *v, size_t n, int refused)
{
    for (size_t i = 0; i < n; i++) {
        int failed;
        char *got = result(v[i].text, strlen(v[i].text), &failed);
        int good = failed == refused && (refused ? strstr(got, v[i].want) != NULL
                                                 : !strcmp(got, v[i].want));
        json_t *shown = json_string(v[i].text); /* escaped, so that it fits on one line */
        char *line = json_dumps(shown, JSON_ENCODE_ANY);
        ok(good, "%.80s", line);
        if (!good)
            printf("# want %s\n# got  %s\n", v[i].want, got);
        free(line);
        json_decref(shown);
        free(got);
    }
}
#define CHECK(list, refused) check_all(list, sizeof list / sizeof *list, refused)

static void test_spaces(void)
{
    static const struct example list[] = {
        {"a\n", "a"},
        {"a\r\nb\r", "a\nb"},
        {"  {% if true %}  \n x\n  {% endif %}\n y", "  \n x\n y"},
        {"a {%- if true -%} \n b {%- endif %}\n c", "ab c"},
        {"a\n  {%+ if true %} b{% endif +%}\nc", "a\n   b\nc"},
        {"a {# b #}\nc {#- d -#} e", "a ce"},
        {"a\n  {# b #}\nc", "a\nc"},
        {"a\n  {{ 1 }}\nb {{- 2 -}} \n c", "a\n  1\nb2c"},
        {"{{ '{{' }}{{ '%}' }}{{ \"#}\" }}", "{{%}#}"},
        {"\t{% set x = 1 %}\n\n{{ x }}", "\n1"},
    };
    CHECK(list, 0);
}

static void test_values(void)
{
    static const struct example list[] = {
        {"{{ 'a' 'b' \"\\x41\\u00e9\\n\\q\\101\" }}", "abA\u00e9\n\\qA"},
        {"{{ messages[0] }}", "{'role': 'system', 'content': ' Be brief.\\n'}"},
        {"{{ [1, 'x', none, true, ('a',), {'k': 2}, \"it's\"] }}",
         "[1, 'x', None, True, ('a',), {'k': 2}, \"it's\"]"},
        {"{{ messages[1] | tojson }}",
         "{\"role\": \"user\", \"content\": \"It's \\\"q\\\" \u00e9\"}"},
        {"{{ {'a': [1, {}], 'b': none} | tojson(indent=2) }}",
         "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": null\n}"},
        {"{{ -7 // 2 }} {{ -7 % 3 }} {{ 2 + 3 * 4 }} {{ 'ab' * 2 }} {{ 1 ~ none ~ 'x' }}",
         "-4 2 14 abab 1Nonex"},
        {"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ true == 1 }} {{ 'a' == 1 }} {{ [1] == [1] }}",
         "True False True False True"},
        {"{{ not 1 == 2 and 3 or 4 }} {{ '' or 'b' }} {{ '' and 'b' }}|", "3 b |"},
        {"{{ 'a' in 'cab' }} {{ 'a' not in ['a'] }} {{ 'role' in messages[0] }}",
         "True False True"},
        {"{{ 'a' if false }}|{{ 'x' if 0 else 'y' if 0 else 'z' }}", "|z"},
        {"{{ 'h\u00e9llo'[1] }}{{ 'h\u00e9llo'[::-1] }}{{ [1, 2, 3][-2:] }}{{ 'hello'[3:0:-1] "
         "}}",
         "\u00e9oll\u00e9h[2, 3]lle"},
        {"{{ messages[1:][0]['role'] }} {{ messages[-1].role }} {{ messages[9] is defined }}",
         "user assistant False"},
        {"{{ nothing }}|{{ nothing is defined }}|{{ nothing | default('d') }}|{{ '' | d('e', t"
         "rue) }}",
         "|False|d|e"},
        {"{{ messages.0.role }} {{ 'abc' | first }} {{ [] | last }}|{{ [] | length }}",
         "system a |0"},
        {"{{ 1, 2 }} {{ (1, 2) + (3,) }} {{ [1] + [2] }}", "(1, 2) (1, 2, 3) [1, 2]"},
        {"{% set x = 2147483647 * 2147483647 * 2 + 2147483647 * 4 + 1 %}{{ x }} {{ (-x - 1) % x }} "
         "{{ (-x - 1) // x }} {{ (x - 1) is divisibleby x }} {{ -3 is odd }}",
         "9223372036854775807 9223372036854775806 -2 False True"},
        {"{{ {true: 1, none: 2, 3: 4} | tojson }}", "{\"true\": 1, \"null\": 2, \"3\": 4}"},
    };
    CHECK(list, 0);
}

static void test_statements(void)
{
    static const struct example list[] = {
        {"{% for m in messages if m.role != 'user' %}{{ loop.index0 }}{{ loop.first }}{{ loop."
         "last }}{{ loop.length }}{{ m.role }} {% endfor %}",
         "0TrueFalse2system 1FalseTrue2assistant "},
        {"{% for x in [] %}x{% else %}none{% endfor %}", "none"},
        {"{% for i in range(6) %}{% if i == 1 %}{% continue %}{% elif i == 4 %}{% break %}{% e"
         "lse %}{{ i }}{% endif %}{% endfor %}",
         "023"},
        {"{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}{% for c in 'h"
         "\u00e9' %}{{ c }}-{% endfor %}",
         "a=1;b=2;h-\u00e9-"},
        {"{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 9 %}{{ x }}{% endfor %}{{ x }}"
         "{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
         "191912"},
        {"{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + loop.index "
         "%}{% endfor %}{{ ns.n }}",
         "6"},
        {"{% set x %} block {{ 1 }} {% endset %}[{{ x }}]{% set y | trim | upper %} up {% ends"
         "et %}[{{ y }}]",
         "[ block 1 ][UP]"},
        {"{% set a, b = 1, 2 %}{% set a, b = b, a %}{{ a }}{{ b }}", "21"},
        {"{% macro f(a, b='q') %}[{{ a }}{{ b }}{{ z }}]{% endmacro %}{% set z = 5 %}{{ f(1) }"
         "}{{ f(b=2, a=3) }}{% for z in [6] %}{{ f(0) }}{% endfor %}",
         "[1q5][325][0q5]"},
        {"{% filter upper %}abc{% endfilter %}{% generation %}gen{% set q = 1 %}{% endgenerati"
         "on %}{{ q }}",
         "ABCgen"},
        {"{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined else '-' }}"
         "{{ loop.revindex }}{% endfor %}{% for a in [1, 2] %}{% for b in [3] %}{{ loop.index "
         "}}{% endfor %}{{ loop.index }}{% endfor %}",
         "-3system2user11112"},
    };
    CHECK(list, 0);
}

static void test_filters(void)
{
    static const struct example list[] = {
        {"{{ messages | map(attribute='role') | join(', ') }}", "system, user, assistant"},
        {"{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ messages | "
         "rejectattr('role', 'in', ['user']) | map(attribute='content') | list }}",
         "1[' Be brief.\\n', '<a>b</a>c']"},
        {"{{ ['a', '', 1] | select | list }}{{ ['a', 1] | select('string') | list }}{{ ['a', '"
         "b'] | map('upper') | join }}",
         "['a', 1]['a']AB"},
        {"{{ ' x ' | trim }}|{{ 'xxaxx' | trim('x') }}|{{ 'aXa' | replace('a', 'b') }}|{{ 'aaa"
         "' | replace('a', 'b', 2) }}",
         "x|a|bXb|bba"},
        {"{{ 'hELLO wORLD' | capitalize }} {{ 'Ab' | lower }} {{ 'Ab' | upper }} {{ '12' | int"
         " + 1 }} {{ 'x' | int(7) }} {{ 3 | string }} {{ -3 | abs }}",
         "Hello world ab AB 13 7 3 3"},
        {"{{ {'a': 1} | items | list }} {{ [3, 1] | reverse | list }} {{ 'ab' | list }} {{ [1,"
         " 1, 2] | unique | list }}",
         "[('a', 1)] [1, 3] ['a', 'b'] [1, 2]"},
        {"{{ 'x' is string }} {{ messages is iterable }} {{ messages[0] is mapping }} {{ 3 is "
         "odd }} {{ 4 is divisibleby 2 }} {{ 'x' is in ['x'] }} {{ tools is none }} {{ 1 is no"
         "t none }} {{ true is boolean }} {{ 1 is number }}",
         "True True True True True True True True True True"},
        {"{% set x = messages | selectattr('role', 'eq', 'no') %}{{ 'yes' if x }}"
         "{% set y = [1, 2] | map('string') %}{{ y | first }}{{ y | join }}{{ y | join }}|",
         "yes12|"},
    };
    CHECK(list, 0);
}

static void test_orders(void)
{
    static const struct example list[] = {
        {"{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'a', 'B'] | sort }} {{ ['b', 'A', 'a', 'B'] | sort"
         "(true) }} {{ messages | sort(attribute='role') | map(attribute='role') | join(' ') }}",
         "[1, 2, 3] ['A', 'a', 'b', 'B'] ['b', 'B', 'A', 'a'] assistant system user"},
        {"{{ {'b': 1, 'A': 2, 'a': 3} | dictsort }} {{ {'b': 1, 'A': 2, 'a': 1} | dictsort(by='va"
         "lue') }} {{ {'b': 1, 'A': 2} | dictsort(false, 'key', true) }}",
         "[('A', 2), ('a', 3), ('b', 1)] [('b', 1), ('a', 1), ('A', 2)] [('b', 1), ('A', 2)]"},
        {"{{ [3, 1, 2] | min }} {{ [3, 1, 2] | max }} {{ ['b', 'A', 'a'] | min }} {{ ['b', 'B'] |"
         " max }} {{ [{'n': 2}, {'n': 1}] | min(attribute='n') }} {{ [] | max is defined }}",
         "1 3 A b {'n': 1} False"},
        {"{{ [none, none] | sort }}", "[None, None]"},
    };
    static const struct example refused[] = {
        {"{{ [1, 'a'] | sort }}", "a string is not ordered against a number"},
        {"{{ messages | sort(attribute='a,b') }}", "an order by several attributes"},
        {"{{ [1] | dictsort }}", "dictsort of a list"},
        {"{{ {'a': 1} | dictsort(by='x') }}", "dictsort by something else"},
    };
    CHECK(list, 0);
    CHECK(refused, 1);
}

static void test_formats(void)
{
    static const struct example list[] = {
        {"{{ '%s and %s' | format('a', 1) }} {{ '100%%: %s' | format(none) }} {{ '<{}|{}>'.format("
         "'a', true) }} {{ '{{}}'.format() }} {{ '{}'.format(none, 2) }}",
         "a and 1 100%: None <a|True> {} None"},
        {"{{ '<a>' + ('<b>' | safe) }} {{ ('<b>' | safe) + \"&'\\\"\" }} {{ ('<' | safe) + ('>' | "
         "safe) }} {{ 'a' ~ ('<b>' | safe) ~ '<' }}",
         "&lt;a&gt;<b> <b>&amp;&#39;&#34; <> a<b><"},
        {"{{ ('a<b' | safe).replace('a', '<') }} {{ 'x<' + (('ab' | safe) | replace('a', '<')) }}"
         " {{ '<' + 'ab'.replace('a', 'c' | safe) }} {{ '<' + ('ab' | safe).split('a')[1] }} {{ '"
         "<' + ','.join(['a' | safe, 'b']) }} {{ '<' + ('a' | safe | list | first) }}",
         "&lt;<b x<<b <cb &lt;b <a,b <a"},
        {"{{ 'ab'.replace('a', '<') }} {{ ('ab' | safe).replace('a', '<' | safe) }}", "<b <b"},
        {"{{ ('a' | safe) | last + '<' }} {{ ('ab' | safe)[::-1] + '<' }} {{ 'ab'[::-1] + '<' }}"
         " {{ ('a' | safe) | first + '<' }}", "a&lt; ba&lt; ba< a<"},
        {"{{ {'a': [1, 'x'], 'b': {}} | tojson(separators=(',', ':')) }} {{ {'\u00e9': '\u6f22"
         "\U0001f389\\x7f'} | tojson(ensure_ascii=true) }} {{ 'a\\x7f' | tojson }}",
         "{\"a\":[1,\"x\"],\"b\":{}} {\"\\u00e9\": \"\\u6f22\\ud83c\\udf89\\u007f\"} \"a\x7f\""},
        {"{{ none | selectattr('x', 'defined') | list }}{{ none | map('upper') | join('x') }}{{ 0"
         " | select | list }}", "[][]"},
    };
    static const struct example refused[] = {
        {"{{ '%s' | format }}", "format needs more arguments"},
        {"{{ 'x' | format(1) }}", "more arguments than the text has places"},
        {"{{ '%d' | format(1) }}", "format with %d: not supported"},
        {"{{ '{0}'.format(1) }}", "format with {0: not supported"},
        {"{{ {} | tojson(sort_keys=true) }}", "tojson with these arguments: not supported"},
    };
    CHECK(list, 0);
    CHECK(refused, 1);
}

static void test_methods(void)
{
    static const struct example list[] = {
        {"{{ ' a '.strip() }}|{{ 'xax'.lstrip('x') }}|{{ 'xax'.rstrip('x') }}|{{ 'a,b,,c'.spli"
         "t(',') }}|{{ ' a  b '.split() }}|{{ 'a b c'.split(' ', 1) }}",
         "a|ax|xa|['a', 'b', '', 'c']|['a', 'b']|['a', 'b c']"},
        {"{{ messages[2].content.split('</a>')[-1] }} {{ 'abc'.startswith('ab') }} {{ 'abc'.en"
         "dswith(('x', 'c')) }} {{ 'a-b'.replace('-', '+') }} {{ 'hello world'.title() }}",
         "c True True a+b Hello World"},
        {"{{ 'a\\nb\\r\\nc\\n'.splitlines() }} {{ 'abcabc'.find('c') }} {{ 'abcabc'.rfind('c')"
         " }} {{ 'abab'.count('b') }} {{ ','.join(['x', 'y']) }} {{ 'abc'.removeprefix('a') }}"
         " {{ 'abc'.removesuffix('c') }} {{ 'a/b/c'.rsplit('/', 1) }}",
         "['a', 'b', 'c'] 2 5 2 x,y bc ab ['a/b', 'c']"},
        {"{{ 'abc'.rfind('') }} {{ 'a'.rfind('ab') }} {{ '\u00e9-\u00e9-'.rfind('\u00e9') }} "
         "{{ '\u00e9a\u00e9'.strip('\u00e9') }} {{ 'a'.rsplit('-', 1) }}", "3 -1 2 a ['a']"},
        {"{{ messages[0].get('role') }} {{ messages[0].get('x') }} {{ messages[0].get('x', 'd'"
         ") }} {{ messages[0].keys() | list }} {{ {'a': 1}.values() | list }}",
         "system None d ['role', 'content'] [1]"},
        {"{{ strftime_now('%d %b %Y, %A') }} {{ strftime_now is defined }} {{ dict(a=1).a }} {"
         "{ range(1, 7, 2) | list }}",
         "26 Jul 2024, Friday True 1 [1, 3, 5]"},
    };
    CHECK(list, 0);
}

static void test_refused(void)
{
    static const struct example list[] = {
        {"\n{{ 'x' | frobnicate }}", "line 2: the filter frobnicate: not supported"},
        {"{{ 'x' is odd_thing }}", "line 1: the test odd_thing: not supported"},
        {"{{ 'x'.encode() }}", "line 1: the method encode of a string: not supported"},
        {"{{ now() }}", "line 1: the function now: not supported"},
        {"a\n\n{% include 'b' %}", "line 3: the tag include: not supported"},
        {"{% call f() %}{% endcall %}", "the tag call: not supported"},
        {"{% for x in [] recursive %}{% endfor %}", "recursive: not supported"},
        {"{{ 1.5 }}", "a number with a point"},
        {"{{ 1 / 2 }}", "a number / a number: not supported"},
        {"{{ '%s' % 1 }}", "a string % a number: not supported"},
        {"{{ 'a' + 1 }}", "a string + a number: not supported"},
        {"{{ messages.append(1) }}", "changes a list: not supported"},
        {"{{ 'abc'.upper }}", "the method upper without a call"},
        {"{{ nothing.x }}", "nothing is undefined and has no x"},
        {"{{ nothing[0] }}", "nothing is undefined and has no such item"},
        {"{{ lipsum() }}", "the function lipsum: not supported"},
        {"{{ 'a' | replace('a', 'b', 'c') }}", "expected a number, got a string"},
        {"{{ messages | map(attribute='role') }}", "a generator is not written"},
        {"{{ messages | select | length }}", "a generator has no length"},
        {"{{ raise_exception('no ' ~ 1) }}", "line 1: the template says: no 1"},
        {"{% for x in none %}{% endfor %}", "none has no members"},
        {"{{ {[]: 1} }}", "a list as a key"},
        {"{{ 'stra\u00dfe' | upper }}", "upper or lower case of U+00DF"},
        {"{{ strftime_now('%c') }}", "the date format %c"},
        {"{{ 'a' | trim(x=1) }}", "trim with these arguments"},
        {"{{ 'a' | replace('a') }}", "replace needs new"},
        {"{% set a, b = [1] %}", "1 values for 2 names"},
        {"{{ 9223372036854775807 }}", "a number above"},
        {"{{ 2147483647 * 2147483647 * 9 }}", "more than 64 bits"},
        {"{{ 1 // 0 }}", "a division by 0"},
        {"{{ x", "line 1: a tag that does not end"},
        {"\n{# x", "line 2: a comment that does not end"},
        {"{% if x %}\na", "line 1: no endif ends this tag"},
        {"{% endif %}", "the tag endif: not supported"},
        {"{% break %}", "outside of a loop"},
        {"{{ ) }}", "unexpected ')'"},
        {"{{ a b }}", "expected the end of the tag, got b"},
        {"{{ 1 is }}", "expected a name, got the end of a tag"},
        {"{{}}", "expected a value, got the end of a tag"},
        {"{{ $ }}", "unexpected character '$'"},
    };
    CHECK(list, 1);
}

/* Runs a template of `start`, n times `text`, then `end`; it must end within about a second. */
static void hostile(const char *start, const char *text, size_t n, const char *end,
                    const char *want)
{
    struct buf b = {0};
    int failed;
    buf_text(&b, start);
    for (size_t i = 0; i < n; i++)
        buf_text(&b, text);
    buf_text(&b, end);
    char *got = result(b.data, b.len, &failed);
    ok(failed && strstr(got, want), "%s %zu x %s: %.80s", start, n, text, got);
    free(got);
    buf_free(&b);
}

static void test_hostile(void)
{
    hostile("", "x", 1 << 20, "", "expected at most 262144 bytes, got 1048576");
    hostile("", "{% if x %}", 20000, "", "nested too deep");
    hostile("{{ ", "(", 20000, "", "nested too deep");
    hostile("{{ ", "not ", 20000, "x }}", "nested too deep");
    hostile("{{ ", "- ", 20000, "1 }}", "nested too deep");
    hostile("{{ 1", " + 1", 20000, " }}", "nested too deep");
    hostile("{{ x", ".a", 20000, " }}", "nested too deep");
    hostile("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "", 0, "", "macros are nested");
    hostile("{% set ns = namespace(x=1) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}"
            "{% endfor %}{{ ns.x }}", "", 0, "", "values are nested too deep");
    hostile("{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}"
            "{% endfor %}", "", 0, "", "more than 64 MiB");
    hostile("{{ 'x' * 2000000000 }}", "", 0, "", "more than 64 MiB");
    hostile("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "", 0,
            "", "more than");
    hostile("{{ ('a' * 4000000).rfind('b' ~ 'a' * 2000000) }}", "", 0, "", "steps");
    hostile("{{ ('a' * 2000000).strip('b' * 2000000 ~ 'a') }}", "", 0, "", "steps");
    hostile("{% set a = 'a' * 4000000 %}{% for i in range(90000) %}{% if a.startswith(a) %}"
            "{% endif %}{% endfor %}", "", 0, "", "steps");
    hostile("{% set a = 'a' * 4000000 %}{% for i in range(90000) %}{% if a | length == 1 %}"
            "{% endif %}{% endfor %}", "", 0, "", "steps");
    hostile("{{ range(2000000000) }}", "", 0, "", "a range of more than 100000");
    hostile("{% set ns = namespace(x=1) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}"
            "{% endfor %}{{ ns.x == ns.x }}", "", 0, "", "steps");
}

/* Each written byte is marked if it comes from a message. */
static void test_given(void)
{
    static const struct example list[] = {
        {"{{ bos_token }}{% for m in messages[1:] %}<{{ m.role }}>{{ m.content | trim }}"
         "{% endfor %}",
         "<s><user>UUUUUUUUUUU<assistant>UUUUUUUUU"},
        {"{{ ('[' + messages[0].content ~ ']').replace('Be', 'is') | upper }}",
         "[UISUUUUUUUU]"},
        {"{{ messages[2].content.split('b')[1] | tojson }}{{ messages[0].content[1:3] * 2 }}",
         "\"UUUUU\"UUUU"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct err e = {0};
        struct jinja_written w = {{0}, {0}};
        json_t *all = variables();
        struct jinja *t = jinja_parse(list[i].text, strlen(list[i].text), &e);
        int bad = !t || jinja_render(t, all, &w, &e) || w.given.len != w.text.len;
        for (size_t k = 0; k < w.text.len && !bad; k++)
            if (w.given.data[k])
                w.text.data[k] = 'U';
        ok(!bad && !strcmp(w.text.data, list[i].want), "given: %s",
           bad ? e.text : w.text.data);
        jinja_written_free(&w);
        jinja_free(t);
        json_decref(all);
    }
}

int main(void)
{
    int failed;
    char *got = result("{{ 1 }}\0{{ 2 }}", 15, &failed);
    ok(!failed && got[0] == '1', "U+0000 in a template");
    free(got);
    test_spaces();
    test_values();
    test_statements();
    test_filters();
    test_orders();
    test_formats();
    test_methods();
    test_refused();
    test_hostile();
    test_given();
    return tap_done();
}
