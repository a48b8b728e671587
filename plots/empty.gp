# empty.gp - prints "no data" in a figure without data, so that a blank page is not read as a
# result.
eval begin(4)
unset border; unset tics; unset grid; unset key
set xrange [0:1]; set yrange [0:1]
message = sprintf('%s: no data%s%s', figure_type, strlen(why) ? ', ' : '', why)
set label 1 message at 0.5, 0.5 center textcolor rgb grey
plot NaN
unset output
