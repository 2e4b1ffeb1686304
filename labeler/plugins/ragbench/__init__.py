"""Published rows of RAGBench as label records, and the splitter that they were made with."""
