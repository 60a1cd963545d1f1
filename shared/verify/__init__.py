"""An independent fold of every ledger that says whether Berth kept its promises."""
