"""Parts of `berth bench league`: every policy that traces have data for, on the same days."""
