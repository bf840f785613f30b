#!/usr/bin/env python3
"""Print t/unit/glob_cases.h: what Python's fnmatch.fnmatchcase says of pairs of pattern and text."""
import fnmatch

PATTERNS = {
    "": ["", "a"],
    "*": ["", "a", ".", ".hidden", "a/b", "a\nb", "\u00e9"],
    "**": ["", "a", "a/b"],
    "?": ["", "a", "/", ".", "\n", "\u00e9", "\u65e5", "\U0001f600", "ab"],
    "??": ["a", "ab", "\u00e9\u00e9", "abc"],
    "abc": ["abc", "ABC", "ab", "abcd"],
    "a*": ["a", "abc", "ba", ""],
    "*a": ["a", "ba", "ab", "aaaa"],
    "*a*": ["a", "bab", "bbb", ""],
    "a*b*c": ["abc", "aXbYc", "abbc", "acb", "abcabc", "abcab"],
    "*.py": [".py", "a.py", "a.pyc", "a/b.py", "a.PY"],
    "*.tar.gz": ["a.tar.gz", "a.tar.gz.gz", "a.gz"],
    "*ab*ab*ab": ["ababab", "abab", "xabyabzab", "ababa", "aabbabab"],
    "*a?c": ["abc", "xaxc", "ac", "abcabc", "abcac"],
    "ls*": ["ls", "ls -la", "lsof", " ls"],
    "git *": ["git", "git ", "git push", "gitk x"],
    "LC_*": ["LC_ALL", "LC_", "LANG", "lc_all"],
    "[abc]": ["a", "b", "c", "d", "", "ab"],
    "[!abc]": ["a", "d", "!", ""],
    "[^abc]": ["a", "^", "d"],
    "[a-c]": ["a", "b", "c", "d", "-"],
    "[!a-c]": ["a", "d", "-", "!"],
    "[a-cx-z]": ["b", "y", "m", "-"],
    "[a-]": ["a", "-", "b"],
    "[-a]": ["a", "-", "b"],
    "[a-z-9]": ["m", "-", "9", "5"],
    "[a-b-c]": ["a", "b", "c", "-"],
    "[--0]": ["-", ".", "/", "0", "1"],
    "[!--0]": ["-", "0", "1"],
    "[!-0]": ["-", "0", "1", "!"],
    "[---]": ["-", ".", ","],
    "[--]": ["-", "a"],
    "[b-a]": ["a", "b", "-", ""],
    "[!b-a]": ["a", "b", "!", "-"],
    "[b-ac]": ["a", "b", "c", "-"],
    "[b-a!c]": ["a", "b", "c", "!", "x"],
    "[b-a!]": ["a", "!", "x"],
    "[b-a^c]": ["a", "^", "c", "x"],
    "[b-a!-x]": ["!", "-", "x", "a", "y"],
    "[b-ad-c!z]": ["a", "!", "z", "d"],
    "[a-zb-a]": ["a", "m", "z", "-"],
    "[a-zb-a-]": ["m", "-", "!"],
    "[c-ad-f]": ["c", "a", "d", "e", "f", "-"],
    "[]]": ["]", "[", "a"],
    "[]a]": ["]", "a", "b"],
    "[!]]": ["]", "a", "!"],
    "[!]a]": ["]", "a", "b"],
    "[]-a]": ["]", "^", "a", "-", "b"],
    "[]-[]": ["]", "[", "-", ""],
    "[!]-[]": ["]", "[", "x"],
    "[[]": ["[", "a"],
    "[[a]": ["[", "a", "b"],
    "[]": ["[]", "[", "]", ""],
    "[!]": ["[!]", "!", "a"],
    "[": ["[", "a", ""],
    "[a": ["[a", "a"],
    "a[": ["a[", "a"],
    "[[": ["[[", "["],
    "[a[b]c": ["[ac", "ac", "bc", "[c"],
    "[*]": ["*", "a", ""],
    "[?]": ["?", "a"],
    "[!*]": ["*", "a"],
    "*[0-9]": ["a1", "1", "a", "1a", "a12"],
    "[a-c]*[x-z]": ["ax", "abcxyz", "a", "dx"],
    "\\*": ["*", "\\*", "\\abc", "abc"],
    "\\[a]": ["\\a", "[a]", "a"],
    "[\\]": ["\\", "a", "[\\]"],
    "[\\n]": ["\\", "n", "\n"],
    "[\\d]": ["\\", "d", "5"],
    "[a&&b]": ["a", "&", "b", "c"],
    "[a||b]": ["|", "a", "x"],
    "[a~~b]": ["~", "a", "x"],
    "[a--b]": ["a", "-", "b", "+"],
    "[\u00e0-\u00ff]": ["\u00e9", "e", "\u0100"],
    "[!\u00e0-\u00ff]": ["\u00e9", "e"],
    "[\u65e5\u672c]": ["\u65e5", "\u672c", "\u8a9e"],
    "\u00e9*": ["\u00e9t\u00e9", "e\u0301", "\u00e8"],
    "*\U0001f600": ["\U0001f600", "a\U0001f600", "\U0001f601"],
    "a.c": ["a.c", "abc"],
    "a+b": ["a+b", "aab"],
    "(a|b)": ["(a|b)", "a"],
    "^a$": ["^a$", "a"],
    "{a,b}": ["{a,b}", "a"],
    "#x": ["#x", "x"],
    "a b": ["a b", "ab"],
    "-*": ["-rf", "rf"],
    "/home/*/x": ["/home/a/x", "/home/a/b/x", "/home//x"],
    "https://*.example.org/*": ["https://a.example.org/", "https://example.org/", "https://a.b.example.org/x/y"],
    "*[!a-z]*": ["abc", "aBc", "1", ""],
    "?*?": ["a", "ab", "abc", ""],
    "*?*": ["", "a", "abc"],
    "***a***": ["a", "bab", "b"],
    "a[!b]c": ["abc", "adc", "a!c", "ac"],
    "[a-a]": ["a", "b", "-"],
    "[ -~]": [" ", "~", "a", "\u00e9", "\n"],
}


def quote(text):
    out = ""
    for byte in text.encode("utf-8"):
        c = chr(byte)
        out += c if 32 <= byte < 127 and c not in '"\\?' else "\\%03o" % byte
    return '"' + out + '"'


def main():
    print("/* Made by t/helper/glob_cases.py with Python 3.11: fnmatch.fnmatchcase(text, pattern). */")
    for pattern, texts in PATTERNS.items():
        for text in texts:
            print("\t{ %s, %s, %s }," % (quote(pattern), quote(text), str(fnmatch.fnmatchcase(text, pattern)).lower()))


main()
