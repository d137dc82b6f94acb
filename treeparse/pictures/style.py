"""The style of all pictures, light or dark as the reader prefers."""

COLOURS = {  # light, dark
    "ground": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "line": ("#7a828e", "#7d8590"),
    "label": ("#0a4a8f", "#8cc2ff"),
    "tag": ("#656d76", "#9aa4af"),
    "mark": ("#c4281c", "#ff8a80"),
    "heat": ("#063d7a", "#6aa5e8"),
    "value": ("#000000", "#ffffff"),
    "on-heat": ("#ffffff", "#000000"),
    "rule": ("#d7dce2", "#30363d"),
}
LIGHT, DARK = ({name: pair[scheme] for name, pair in COLOURS.items()} for scheme in (0, 1))


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--tp-{name}:{colour};" for name, colour in colours.items())


# A program that draws SVG without CSS variables uses the light colours of the elements' attributes.
STYLE = (
    f".tp{{{_variables(LIGHT)}font-family:'Noto Sans','Segoe UI',Helvetica,Arial,sans-serif;direction:ltr}}"
    f"@media (prefers-color-scheme:dark){{.tp{{{_variables(DARK)}}}}}"
    ".tp-ground,.tp-back{fill:var(--tp-ground)}"
    ".tp-word,.tp-caption{fill:var(--tp-ink)}"
    ".tp-tag{fill:var(--tp-tag)}"
    ".tp-arc{stroke:var(--tp-line)}"
    ".tp-arc .tp-tip{fill:var(--tp-line);stroke:none}"
    ".tp-name text{fill:var(--tp-label)}"
    ".tp-arc.tp-other-head{stroke:var(--tp-mark);stroke-width:2;stroke-dasharray:6 4}"
    ".tp-arc.tp-other-head .tp-tip{fill:var(--tp-mark)}"
    ".tp-name.tp-other-head text,.tp-name.tp-other-label text{fill:var(--tp-mark);font-weight:bold}"
    ".tp-name.tp-other-label rect{stroke:var(--tp-mark);stroke-dasharray:3 2}"
    ".tp-arc:hover{stroke:var(--tp-ink)}"
    ".tp-heat{fill:var(--tp-heat);stroke:var(--tp-rule)}"
    ".tp-value{fill:var(--tp-value)}"
    ".tp-on-heat{fill:var(--tp-on-heat)}"
    ".tp-bar{fill:var(--tp-heat)}.tp-curve{stroke:var(--tp-heat)}.tp-rule{stroke:var(--tp-rule)}"
    ".tp-frame{stroke:var(--tp-mark)}"
)

PAGE_STYLE = (
    f":root{{color-scheme:light dark;{_variables(LIGHT)}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
    "body{margin:0 auto;padding:1rem;max-width:110rem;background:var(--tp-ground);color:var(--tp-ink);"
    "font:16px/1.5 'Noto Sans','Segoe UI',Helvetica,Arial,sans-serif}"
    "h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:0;overflow-wrap:anywhere}"
    "h2 a,nav a{color:var(--tp-label);text-decoration:none}a:hover{text-decoration:underline}"
    "section{border-top:1px solid var(--tp-rule);padding:1rem 0}section p{margin:.3rem 0 .8rem;overflow-wrap:anywhere}"
    ".tp-figures{display:flex;flex-wrap:wrap;gap:1rem}"
    "figure{margin:0;max-width:100%;overflow-x:auto}figure svg{display:block}"
    ".tp-figures[dir=rtl] figcaption{text-align:right}"
    "figcaption{position:sticky;left:0;color:var(--tp-tag);font-size:.875rem}"
    ".tp-sample{color:var(--tp-mark);font-weight:bold}"
    ".tp-dashed{border-bottom:2px dashed}.tp-framed{border:1px dashed;border-radius:3px;padding:0 .3em}"
    "table{border-collapse:collapse;margin:0 0 1rem;font-variant-numeric:tabular-nums}"
    "th,td{text-align:right;padding:.15rem .7rem;border-bottom:1px solid var(--tp-rule)}"
    "th:first-child,td:first-child{text-align:left;padding-left:0}th{color:var(--tp-tag);font-weight:normal}"
    ".tp-tables{overflow-x:auto}"
    "nav ol{max-height:20rem;overflow:auto;overflow-wrap:anywhere}"
)
