"""Results of other programs taken into the journal."""
