# style.gp - the style of all figures; gnuplot reads it before the file of the figure. Sizes are for
# a printed column, with letters of 7.5 pt. A model has one colour in all figures: LLaDA blue, LLaMA
# vermillion, latent thought models black (Okabe-Ito, which colour-blind readers can tell apart,
# also in grey). Further sweeps of a model have their own colours, shapes and dashes.
set encoding utf8
set datafile separator "\t"
dumb = (format eq 'dumb')
array kind_colour[4] = ['#0072B2', '#D55E00', '#202020', '#767676']
array kind_point[4] = [7, 2, 13, 4] # LLaDA, LLaMA, latent; a single kernel
grey = '#767676'; faint = '#D9D9D9'
colour(kind) = kind_colour[int(kind) + 1]
rgb(kind) = kind == 0 ? 0x0072B2 : (kind == 1 ? 0xD55E00 : (kind == 2 ? 0x202020 : 0x767676))
point(kind) = kind_point[int(kind) + 1]
# shapes() lists the point types of a kind, in series order. LLaDA has filled types, LLaMA crosses.
shapes(kind) = kind == 1 ? '2 3 1 2 3' : (kind == 0 ? '7 5 9 13 11' : '13 9 5 11 7')
variant(kind, n) = int(word(shapes(kind), int(n - 1) % 5 + 1))
# The hollow form of a point type means that the machine was disturbed during the measurement.
hollow(kind, n) = kind == 1 ? 14 : variant(kind, n) - 1
hues(kind) = kind == 0 ? '#0072B2 #009E73 #CC79A7 #56B4E9 #7B3FA0 #4D4D4D #8C6D1F #004D43' : \
    (kind == 1 ? '#D55E00 #E69F00 #8A3D00 #A50F15' : '#202020 #8C6D1F #CC79A7 #767676')
# The first colour is for the plain sweep only; the other colours repeat after the last one. For
# LLaDA numbers 2 to 36 are 7 colours by 5 shapes; 37 to 41 and 42 to 46 have one more colour each.
hue(kind, n) = n < 2 ? word(hues(kind), 1) : kind == 0 && n > 41 ? '#B30086' : \
    kind == 0 && n > 36 ? '#9BB300' : \
    word(hues(kind), int(n - 2) % (words(hues(kind)) - 1) + 2)
shade(a, b, t) = int(a + (b - a) * t)
# blue(t) goes from light (t = 0) to the blue of LLaDA (t = 1), for series that differ in steps.
blue(t) = 65536 * shade(138, 0, t) + 256 * shade(198, 106, t) + shade(232, 168, t)
hex(rgb) = sprintf('#%06X', rgb)

# The place of a method in this table gives its colour, shape and dash in every panel and figure.
# series_method[] has the method of each series, without values ("lookup", not "lookup 5"), so the
# values of a method look alike. Series without a method in the table are drawn by their variant.
methods(kind) = kind == 1 ? ' plain lookup draft self-draft strided eagle3 dflash ' : ' ' \
    . 'vanilla threshold factor entropy-bound hierarchical prophet credit slowfast ' \
    . 'saber wino klass draft prefix dual prefix-threshold dual-threshold dual-factor ' \
    . 'dual-draft half-steps cosine front vicinity-threshold delayed features ' \
    . 'features-threshold sparse sparse-threshold streaming dpad ' \
    . 'grow dynamic origin joint-quality joint-speed localleap d2f dynamic-sampled ' \
    . 'sched less s2d2 dawn entropy-sampled '
at_char(kind, method) = kind == 2 || words(method) != 1 ? 0 : \
    strstrt(methods(kind), ' ' . method . ' ')
place(kind, method) = at_char(kind, method) < 1 ? 0 : \
    words(substr(methods(kind), 1, at_char(kind, method))) + 1
# The argument of variant() and hue(). 1 is the plain sweep; numbers up to 46 all look different.
number(kind, method) = place(kind, method) < 1 ? 1 : place(kind, method) + (kind == 0)
with_methods = exists('series_method')
method_of(k) = with_methods ? series_method[k] : ''
if (!exists('series_count')) series_count = 0
array series_number[series_count > 0 ? series_count : 1]
array series_fill[series_count > 0 ? series_count : 1]
is_plain(k) = series_kind[k] == 0 && place(0, method_of(k)) == 0
any_method = 0; plain = 0
do for [k = 1:series_count] {
    any_method = any_method || place(series_kind[k], method_of(k)) > 0
    plain = plain + is_plain(k)
}
seen = 0
do for [k = 1:series_count] {
    n = number(series_kind[k], method_of(k))
    own = !exists('series_variant') || place(series_kind[k], method_of(k)) > 0 ? 1 \
        : series_variant[k]
    series_number[k] = n > 1 ? n : (own > 1 && any_method ? own + 37 : own)
    series_fill[k] = is_plain(k) ? hex(blue(plain > 1 ? seen / (plain - 1.0) : 1)) \
        : hue(series_kind[k], series_number[k])
    seen = seen + is_plain(k)
}
look(k) = hue(series_kind[k], series_number[k])
mark(k) = variant(series_kind[k], series_number[k])
open(k) = hollow(series_kind[k], series_number[k])
dash(k) = series_kind[k] == 1 ? 1 : (series_number[k] - 1) % 5 + 1
# kind_dash() gives the dash of a model in curves over time.
kind_dash(kind) = kind == 0 ? 1 : (kind == 1 ? 2 : 4)
# eval begin(height in cm): sets the terminal and the output file.
if (!exists('letters')) letters = 'mono'
begin(h) = dumb ? sprintf("set terminal dumb %s noenhanced size 110,%d", letters, int(3.2 * h)) : \
    (format eq 'svg' ? sprintf("set terminal svg noenhanced size %d,%d " \
        . "font 'Sans,10' linewidth 1 background '#ffffff'; set output out", \
        int(width_cm * 37.8), int(h * 37.8)) : \
    (format eq 'png' ? sprintf("set terminal pngcairo noenhanced size %d,%d font 'Sans,7.5' " \
        . "fontscale 3.125 linewidth 3.1 pointscale 3.1; set output out", \
        int(width_cm * 118.11), int(h * 118.11)) : \
    sprintf("set terminal pdfcairo noenhanced size %.2fcm,%.2fcm font 'Sans,7.5' linewidth 1 " \
        . "pointscale 0.5; set output out", width_cm, h)))
set border 3 linewidth 0.7 linecolor rgb grey
set tics nomirror out scale 0.6 textcolor rgb '#202020'
set grid linecolor rgb faint linewidth 0.5 linetype 1
set title offset 0,-0.6
set format '%g'
narrow = width_cm < 10
# In an SVG the pointer shows the values of marks. gnuplot draws an invisible label at each value,
# and lib/figure/svg.c turns the label into a target. The labels of panel p are drawn by
# for [i = 1:tips(p)] $tips index p - 1 using 1:2:5 @tip. A box needs a second such line, for its
# first corner, with ("[") in place of column 5.
tips(p) = format eq 'svg' ? tip_count[p] : 0
tip = "with labels hypertext point pointtype 7 pointsize 0.1 linecolor rgb '#FF000000'"
set key noautotitle
set style fill solid 1.0 noborder
ok(x) = (x == x)
# eval log_tics('y', lo, hi): sets readable ticks on a logarithmic axis between lo and hi.
log_steps(lo, hi) = hi / lo > (narrow ? 6 : 60) ? '1 2 5' : \
    (hi / lo > (narrow ? 2 : 6) ? '1 1.5 2 3 4 6 8' : \
    '1 1.2 1.4 1.6 1.8 2 2.5 3 3.5 4 5 6 7 8 9')
log_tics(axis, lo, hi) = sprintf("set %stics (%.10g); do for [e=%d:%d] {do for [m in '%s'] " \
    . "{tic = m * 10.0**e; if (tic >= %.10g && tic <= %.10g) " \
    . "{set %stics add (sprintf('%%g', tic) tic)}}}", \
    axis, lo / 1e6, int(floor(log10(lo))), int(ceil(log10(hi))), log_steps(lo, hi), lo, hi, axis)
# A key below the panels, made of labels, because gnuplot's own key is as wide as one panel. eval
# key_plan(names, letters): sets key_rows. The key has all series and `names` other entries; the
# longest of these other entries has `letters` letters. eval key_series(place, label): draws the
# series from entry `place` of the key on, as labels from number `label` on.
key_x(i) = (dumb ? 0.08 : 0.06) + (i % key_columns) * 0.94 / key_columns
key_y(i) = 0.8 + 1.3 * (key_rows - 1 - i / key_columns)
key_plan(names, letters) = sprintf("key_names = %d; key_letters = %d; ", names, letters) \
    . "do for [k = 1:series_count] {if (series_first[k]) {key_names = key_names + 1; " \
    . "n = strlen(series_name[k]); key_letters = n > key_letters ? n : key_letters}}; " \
    . "key_columns = int(key_room / (key_letters + 5)); " \
    . "key_columns = key_columns < 1 ? 1 : (key_columns > 4 ? 4 : key_columns); " \
    . "key_columns = key_columns > key_names && key_names > 0 ? key_names : key_columns; " \
    . "key_rows = int(ceil(key_names / (1.0 * key_columns)))"
# The number of letters that fit in one line of the key.
key_room = width_cm * 5.9
short(name) = strlen(name) > key_room - 5 ? substr(name, 1, int(key_room) - 6) . '…' : name
key_series(place, label) = sprintf("key_next = %d; ", place) \
    . "do for [k = 1:series_count] {if (series_first[k]) {" \
    . sprintf("set label key_next + %d short(series_name[k]) ", label - place) \
    . "at screen key_x(key_next), char key_y(key_next) offset 1.5, -0.25 " \
    . "point pointtype mark(k) linecolor rgb look(k); key_next = key_next + 1}}"
