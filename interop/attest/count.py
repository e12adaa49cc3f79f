"""Prints how many tests of a JUnit report passed and how many did not. A skipped test did not, and neither did an empty run."""

import sys
import xml.etree.ElementTree

suites = list(xml.etree.ElementTree.parse(sys.argv[1]).iter("testsuite"))
tests, *others = (sum(int(suite.get(name)) for suite in suites) for name in ("tests", "failures", "errors", "skipped"))
print(tests - sum(others), sum(others) if tests else 1)
