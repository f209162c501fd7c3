"""Questions with known answers, and how well they are answered."""
