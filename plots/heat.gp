# heat.gp - draws heat maps with a number in each cell; memory.gp and ratio.gp set the colours.
# Values are logarithms to base 2. A cell without a value is hatched and shows the reason.
columns = narrow ? 1 : (panel_count < 4 ? panel_count : int(ceil(panel_count / 2.0)))
panel_rows = int(ceil(panel_count / (1.0 * columns)))
eval begin(panel_rows * (2.6 + 0.85 * (row_count > 3 ? row_count : 3)) + 0.6)
unset grid; unset border; unset key
set tics scale 0
set xrange [0.5:column_count + 0.5]
set yrange [0.5:row_count + 0.5]
set xtics ()
do for [i = 1:column_count] {set xtics add (column_label[i] i)}
set xlabel x_label
set cbrange [value_lo:value_hi]
longest = 0
do for [i = 1:row_count] {longest = strlen(row_label[i]) > longest ? strlen(row_label[i]) : longest}
left = longest * 0.9 + (strlen(y_label) ? 4 : 2)
set multiplot layout panel_rows, columns \
    margins char left, char (narrow ? 1 : 17), char 3.4, char 1.8 spacing char 4, char 6
set colorbox user origin screen 0.87, char 3.4 noborder \
    size screen 0.014, screen (0.78 - 0.04 * panel_rows)
span = value_hi - value_lo
step = span > 6 ? ceil(span / 6) : (span < 2 ? 0.5 : 1)
set cbtics ()
do for [i = int(ceil(value_lo / step)):int(floor(value_hi / step))] {
    set cbtics add (box_tic(i * step) i * step)
}
set label 1 box_label at screen 0.985, screen 0.5 center rotate textcolor rgb '#202020'
if (narrow) {unset colorbox; unset label 1}
do for [p = 1:panel_count] {
    set title panel_title[p]
    unset ylabel
    if (p % columns == 1 || columns == 1) {set ylabel y_label}
    if (p % columns != 1 && columns > 1) {unset ytics} else {
        set ytics () nomirror scale 0 textcolor rgb '#202020'
        do for [i = 1:row_count] {set ytics add (row_label[i] i)}
    }
    if (p > 1) {unset colorbox; unset label 1}
    plot $cells index p - 1 using 1:2:($1 - 0.48):($1 + 0.48):($2 - 0.47):($2 + 0.47):3 \
            with boxxyerror fillstyle solid noborder linecolor palette, \
        $cells index p - 1 \
            using ($5 == 1 ? $1 : NaN):2:($1 - 0.48):($1 + 0.48):($2 - 0.47):($2 + 0.47) \
            with boxxyerror linecolor rgb '#BBBBBB' fillstyle pattern 4 noborder, \
        $cells index p - 1 using 1:2:(strcol(6)):4 with labels textcolor rgb variable, \
        for [i = 1:tips(p)] $tips index p - 1 using 1:2:('[') @tip, \
        for [i = 1:tips(p)] $tips index p - 1 using 3:4:5 @tip
}
unset multiplot
unset output
