// What draws the charts of a report. Parts of Vega that no chart uses are left out: see build.
export { parse, View } from "vega";
export { compile } from "vega-lite";
export { expressionInterpreter } from "vega-interpreter";
