# style.gp - what all figures share; it comes before the file of the figure.
# Sizes are those of a printed column, letters 7.5 pt. One model has one colour in every figure
# (Okabe-Ito, told apart by colour-blind readers and in grey): LLaDA blue, LLaMA vermillion, the
# third way black; more sweeps of a model have colours, shapes and dashes of their own.
set encoding utf8
set datafile separator "\t"
dumb = (format eq 'dumb')
array kind_colour[3] = ['#0072B2', '#D55E00', '#202020']
array kind_point[3] = [7, 2, 13]
grey = '#767676'; faint = '#D9D9D9'
colour(kind) = kind_colour[int(kind) + 1]
rgb(kind) = kind == 0 ? 0x0072B2 : (kind == 1 ? 0xD55E00 : 0x202020)
point(kind) = kind_point[int(kind) + 1]
# The first, second, ... series of a kind: filled shapes for LLaDA, crossed ones for LLaMA.
shapes(kind) = kind == 1 ? '2 3 1 2 3' : (kind == 0 ? '7 5 9 13 11' : '13 9 5 11 7')
variant(kind, n) = int(word(shapes(kind), int(n - 1) % 5 + 1))
# The same drawn hollow: its time was taken while the machine was disturbed.
hollow(kind, n) = kind == 1 ? 4 : variant(kind, n) - 1
hues(kind) = kind == 0 ? '#0072B2 #009E73 #CC79A7 #56B4E9 #7B3FA0 #4D4D4D #8C6D1F #004D43' : \
    (kind == 1 ? '#D55E00 #E69F00 #8A3D00 #A50F15' : '#202020 #8C6D1F #CC79A7 #767676')
hue(kind, n) = word(hues(kind), int(n - 1) % words(hues(kind)) + 1)
shade(a, b, t) = int(a + (b - a) * t)
# Blue from light (t = 0) to darker than LLaDA's (t = 1), for series that differ in steps.
blue(t) = 65536 * shade(150, 0, t) + 256 * shade(205, 84, t) + shade(236, 140, t)
hex(rgb) = sprintf('#%06X', rgb)
# eval begin(height in cm): the terminal and the output file.
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
# In an SVG the marks say their values: plot makes targets for a pointer of these labels. A mark is
# for [i = 1:tips(p)] $tips index p - 1 using 1:2:5 @tip, a box of two corners has :("[") first.
tips(p) = format eq 'svg' ? tip_count[p] : 0
tip = "with labels hypertext point pointtype 7 pointsize 0.1 linecolor rgb '#FF000000'"
set key noautotitle
set style fill solid 1.0 noborder
ok(x) = (x == x)
# Readable ticks on a logarithmic axis between lo and hi: eval log_tics('y', lo, hi).
log_steps(lo, hi) = hi / lo > 60 ? '1 2 5' : (hi / lo > 6 ? '1 1.5 2 3 4 6 8' : \
    '1 1.2 1.4 1.6 1.8 2 2.5 3 3.5 4 5 6 7 8 9')
log_tics(axis, lo, hi) = sprintf("set %stics (%.10g); do for [e=%d:%d] {do for [m in '%s'] " \
    . "{tic = m * 10.0**e; if (tic >= %.10g && tic <= %.10g) " \
    . "{set %stics add (sprintf('%%g', tic) tic)}}}", \
    axis, lo / 1e6, int(floor(log10(lo))), int(ceil(log10(hi))), log_steps(lo, hi), lo, hi, axis)
# A key below the panels, made of labels, since gnuplot's own is no wider than one panel.
# eval key_plan(names, letters): key_rows for the series and so many other names, of which the
# longest has so many letters. eval key_series(place, label): the series from a place on, as labels
# from that one on; key_next is then the place behind them.
key_x(i) = 0.08 + (i % key_columns) * 0.92 / key_columns
key_y(i) = 0.8 + 1.3 * (key_rows - 1 - i / key_columns)
key_plan(names, letters) = sprintf("key_names = %d; key_letters = %d; ", names, letters) \
    . "do for [k = 1:series_count] {if (series_first[k]) {key_names = key_names + 1; " \
    . "n = strlen(series_name[k]); key_letters = n > key_letters ? n : key_letters}}; " \
    . "key_columns = narrow ? (key_letters > 24 ? 1 : 2) : (key_letters > 30 ? 2 : " \
    . "(key_letters > 24 ? 3 : 4)); key_rows = int(ceil(key_names / (1.0 * key_columns)))"
key_series(place, label) = sprintf("key_next = %d; ", place) \
    . "do for [k = 1:series_count] {if (series_first[k]) {" \
    . sprintf("set label key_next + %d series_name[k] ", label - place) \
    . "at screen key_x(key_next), char key_y(key_next) offset 1.5, -0.25 " \
    . "point pointtype variant(series_kind[k], series_variant[k]) " \
    . "linecolor rgb hue(series_kind[k], series_variant[k]); key_next = key_next + 1}}"
