"""What hosts lack, and how they are set up."""
