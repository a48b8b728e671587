# empty.gp - a figure without data says so; nobody shall take a blank page for a result.
eval begin(4)
unset border; unset tics; unset grid; unset key
set xrange [0:1]; set yrange [0:1]
set label 1 sprintf('%s: no data', figure_type) at 0.5, 0.5 center textcolor rgb grey
plot NaN
unset output
