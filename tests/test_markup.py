"""Tables that people paste: values come out as they are, whatever they mean to Markdown, LaTeX or HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st

from metrics_core import InputError, compare
from metrics_core.markup import Cell, latex_text, markdown_text, to_html, to_latex, to_markdown

HOSTILE = '<script>alert("1")</script> | a_b* `c` $d$ \\e {f} [g](h) #i %j &amp; ~k ^l\u2028m\nn'
COLUMNS = {"run": ["first", "second"], "n": [3, 40], "AP": [Cell(0.25), Cell(0.5, bold=True, mark="a")]}


class Texts(HTMLParser):
    """The elements of a page and the text of its cells."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.cells = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


def test_markdown():
    assert to_markdown(COLUMNS) == (
        "| run | n | AP |\n| --- | --: | --: |\n| first | 3 | 0.2500 |\n| second | 40 | **0.5000**<sup>a</sup> |\n"
    )


def test_latex():
    assert to_latex(COLUMNS) == (
        "\\begin{tabular}{lrr}\n\\toprule\nrun & n & AP \\\\\n\\midrule\nfirst & 3 & 0.2500 \\\\\n"
        "second & 40 & \\textbf{0.5000}\\textsuperscript{a} \\\\\n\\bottomrule\n\\end{tabular}\n"
    )


@pytest.mark.parametrize("name", ["[ours]", "*"])
def test_a_line_of_latex_does_not_begin_with_an_argument_of_the_line_break_before_it(name):
    assert f"\\\\\n{{}}{name} & 2" in to_latex({"run": ["first", name], "n": [1, 2]})


def test_html():
    assert to_html(COLUMNS) == (
        '<table>\n<thead><tr><th scope="col">run</th><th scope="col">n</th><th scope="col">AP</th></tr></thead>\n'
        "<tbody>\n"
        '<tr><th scope="row">first</th><td>3</td><td>0.2500</td></tr>\n'
        '<tr><th scope="row">second</th><td>40</td><td><b>0.5000</b><sup>a</sup></td></tr>\n</tbody>\n</table>\n'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EN DASH}"),
        (float("nan"), "\N{EN DASH}"),
        (True, "True"),
        (7, "7"),
        (1 / 3, "0.3333"),
        (-0.5, "-0.5000"),
        ("a\nb", "a b"),
    ],
)
def test_values(value, text):
    assert Cell(value).text == text


@given(st.text(max_size=40))
def test_html_of_any_text_is_that_text(text):
    found = Texts(to_html({text: [text]}))
    assert found.tags == ["table", "thead", "tr", "th", "tbody", "tr", "th"]
    assert found.cells[1].replace("\n", "") == " ".join(text.split())


@given(st.text(max_size=40))
def test_a_markdown_table_has_as_many_cells_as_columns(text):
    for line in to_markdown({text: [text, text], "b": [1, 2]}).splitlines():
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3


@given(st.text(max_size=40))
def test_latex_has_no_command_of_the_text(text):
    left = latex_text(text)
    for ours in sorted(
        {
            r"\textbackslash{}",
            r"\textasciitilde{}",
            r"\textasciicircum{}",
            r"\textless{}",
            r"\textgreater{}",
            r"\textbar{}",
            r"\textquotedbl{}",
            r"\{",
            r"\}",
            r"\&",
            r"\%",
            r"\$",
            r"\#",
            r"\_",
            "$-$",
        },
        key=len,
    )[::-1]:
        left = left.replace(ours, "")
    assert not set(left) & set('\\{}&%$#_~^<>|"')


def test_hostile_text():
    assert markdown_text(HOSTILE) == (
        r'\<script\>alert("1")\</script\> \| a\_b\* \`c\` \$d\$ \\e \{f\} \[g\](h) #i %j &amp;amp; \~k ^l m n'
    )
    assert "<script" not in to_html({HOSTILE: [HOSTILE]})


def test_columns_of_unequal_length():
    with pytest.raises(InputError, match=r"columns must be of one length, got {'a': 1, 'b': 2}"):
        to_markdown({"a": [1], "b": [1, 2]})


@pytest.fixture
def comparison():
    scores = {"plain": 0.25, "b_m|25": 0.5, "<best>": 0.75}
    runs = {
        name: {query: mean + (query % 5) / 100 + (query % 7) * mean / 100 for query in range(30)}
        for name, mean in scores.items()
    }
    return compare(runs, metrics="nDCG@10")


def test_a_comparison_marks_the_best_and_whom_a_run_beats(comparison):
    lines = comparison.to_markdown().splitlines()
    assert re.fullmatch(r"\| c \| \\<best\\> \| \*\*0\.\d{4}\*\*<sup>ab</sup> \|", lines[4])
    assert re.fullmatch(r"\| b \| b\\_m\\\|25 \| 0\.\d{4}<sup>a</sup> \|", lines[3])
    assert re.fullmatch(r"\| a \| plain \| 0\.\d{4} \|", lines[2])
    row = next(line for line in lines if line.startswith("| nDCG@10 | plain | \\<best\\>"))
    assert row.endswith(r"| 0/0/30 | \< 0.0001 | \< 0.0001<sup>\*</sup> | \< 0.0001 | 30 |")
    assert "Raised letters: runs that a run is significantly better than" in comparison.to_markdown()
    assert "Paired t-test, Holm over 3 comparisons per metric (all pairs)." in comparison.to_markdown()


def test_the_same_in_every_form(comparison):
    assert r"b & b\_m\textbar{}25 & " in comparison.to_latex()
    assert "needs \\usepackage{booktabs}" in comparison.to_latex()
    notes = [line for line in comparison.to_latex().splitlines() if "footnotesize" in line]
    assert len(notes) == 2
    assert all(line[0] == "{" and line.endswith("\\par}") for line in notes)  # what follows has its own size
    assert "&lt;best&gt;" in comparison.to_html() == comparison._repr_html_()
    text = repr(comparison)
    assert [line.split()[:2] for line in text.splitlines()[1:4]] == [["a", "plain"], ["b", "b_m|25"], ["c", "<best>"]]
    assert len({len(line) for line in text.splitlines()[6:9]}) == 1


def test_equal_means_have_no_best_and_counts_have_none():
    equal = compare({"a": {1: 0.5, 2: 1}, "b": {1: 1, 2: 0.5}})
    assert "**" not in equal.to_markdown()
    counts = compare({"a": {1: 5, 2: 5}, "b": {1: 1, 2: 2}}, metrics="NumRet")
    assert "**" not in counts.to_markdown().split("\n\n")[0]
